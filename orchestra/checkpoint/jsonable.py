"""Places and data as JSON, whatever they hold; odd values have the forms of `docs/reference/json-form.md`."""

from typing import Any

from orchestra.checkpoint.json_values import LargeValue, to_json
from orchestra.checkpoint.places import Large, Place
from orchestra.codec.loader import Loader
from orchestra.ids import Digest, iso
from orchestra.model.tree import Table, Vec


def place_json(place: Place, loader: Loader, *, large: bool = True) -> Any:
    """What stands at a place as JSON; instants of our own are ISO text."""
    place = place.opened(loader, large=large)
    if place.instant is not None:
        return iso(place.instant)
    if isinstance(place.held, Large):
        return plain_json(LargeValue(Digest(bytes.fromhex(place.held.digest)), place.held.size))
    if place.theirs:
        return plain_json(place.held)
    if isinstance(place.held, dict | Table):
        return {str(each.name): place_json(each, loader, large=large) for each in place.below()}
    if isinstance(place.held, Vec | list | tuple):
        return [place_json(each, loader, large=large) for each in place.below()]
    return plain_json(place.held)


def plain_json(held: Any) -> Any:
    """Data that people handed in as JSON; what JSON has no form for is an object such as `{"$bytes": …}`."""
    return to_json(held)
