"""Fixtures: a project with runs that ended in every way, one of the test's own, and servers over both."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.pages.house import Visitor, house_of, visiting
from tests.browser.site import Site
from tests.unit.cli.project import ROOT, Project


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project in which runs completed, failed, wait for an answer, and were rolled back."""
    made = Project(tmp_path_factory.mktemp("project"))
    made.workflow("quick", "quick")
    made.run("run", "flow.yaml", "--run-id", "whole")
    made.workflow("quick", "breaks", name="fragile", file="fragile.yaml")
    made.run("run", "fragile.yaml", "--run-id", "broken", code=1)
    made.workflow("quick", "asks", name="asking", file="asking.yaml")
    made.run("run", "asking.yaml", "--run-id", "asked", code=3)
    made.run("run", str(ROOT / "configs/resilience_demo.yaml"), "--run-id", "tough")
    yield made
    made.close()


@pytest.fixture(scope="session")
def house(project: Project) -> Iterator[Site]:
    """A server over what nobody changes."""
    with house_of(project) as found:
        yield found


@pytest.fixture
def visitor(chromium: Browser, house: Site) -> Iterator[Visitor]:
    """Somebody at the page; at the end nothing may have gone wrong in it."""
    with visiting(chromium, house) as found:
        yield found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Project]:
    """A project of the test's own, to change things in."""
    made = Project(tmp_path)
    yield made
    made.close()


@pytest.fixture
def own_house(own: Project) -> Iterator[Site]:
    """A server over the project of the test, in which a run went through the gate once."""
    own.workflow("quick", "gate", "quick")
    own.go()
    own.run("run", "flow.yaml", "--run-id", "r1")
    (own.folder / "go").unlink()
    (own.folder / "began").unlink()
    with house_of(own) as found:
        yield found


@pytest.fixture
def actor(chromium: Browser, own_house: Site) -> Iterator[Visitor]:
    """Somebody who may change things."""
    with visiting(chromium, own_house) as found:
        yield found
