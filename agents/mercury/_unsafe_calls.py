"""Calls that run data as code, trust what must not be trusted, or open a door."""

import ast
import re
from collections.abc import Callable, Iterator

from _finding import Hit, Rule
from _nodes import aliases, dotted, full_name, is_constant, keyword, words
from _source import Source

CALL_RULES = {
    "dangerous-eval": Rule("high", "Use ast.literal_eval, a parser or a table of functions instead."),
    "shell-injection": Rule(
        "high", "Pass a list of arguments without a shell, or quote each part with shlex.quote."
    ),
    "unsafe-load": Rule(
        "high", "Use JSON, or for YAML yaml.safe_load; or verify a signature before loading."
    ),
    "insecure-temp": Rule(
        "medium", "Use tempfile.NamedTemporaryFile or mkstemp, which create the file themselves."
    ),
    "tls-not-verified": Rule(
        "high", "Leave verification on; give `verify` the path of your own authority if you need one."
    ),
    "unsafe-extract": Rule(
        "high", "Pass filter='data' (Python 3.12, also in later 3.8–3.11), or check each member's path."
    ),
    "debug-enabled": Rule("high", "Take it from the environment, with False as the default."),
    "binds-everywhere": Rule("medium", "Bind to 127.0.0.1 by default and let the operator choose."),
    "world-writable": Rule("medium", "Give only the rights that are needed, such as 0o640 or 0o750."),
    "unknown-host-key": Rule("high", "Load known host keys and reject the others."),
    "missing-timeout": Rule("medium", "Pass `timeout`, in seconds."),
    "unescaped-html": Rule("high", "Let the template escape it, or call escape() on each part."),
}
Check = Callable[[ast.Call, str], str | None]
_LOADERS = frozenset(
    [
        "pickle.load",
        "pickle.loads",
        "pickle.Unpickler",
        "cPickle.load",
        "cPickle.loads",
        "dill.load",
        "dill.loads",
        "marshal.load",
        "marshal.loads",
        "shelve.open",
        "jsonpickle.decode",
        "joblib.load",
        "pandas.read_pickle",
    ]
)
_SHELLS = frozenset({"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"})
_HTTP = re.compile(r"^(requests|httpx|aiohttp|urllib3)\b|(^|\.)(session|client|http)\w*\.\w+$", re.IGNORECASE)
_TRUSTED_HTML = frozenset(
    {"markupsafe.Markup", "flask.Markup", "jinja2.Markup", "django.utils.safestring.mark_safe"}
)
_ASKS = re.compile(r"requests\.(?:get|post|put|patch|delete|head|options|request)|urllib\.request\.urlopen")
_SAFE_YAML = ("SafeLoader", "CSafeLoader", "BaseLoader")


def _eval(call: ast.Call, name: str) -> str | None:
    if (
        name in ("eval", "exec", "builtins.eval", "builtins.exec")
        and call.args
        and not is_constant(call.args[0])
    ):
        return f"`{name}` runs whatever text it is given as code."
    return None


def _shell(call: ast.Call, name: str) -> str | None:
    command = call.args[0] if call.args else keyword(call, "args")
    if command is None or _fixed(command):
        return None
    if name in _SHELLS:
        return (
            f"`{name}` hands a text that is put together to a shell, which also runs what was smuggled "
            "into it."
        )
    if name.startswith("subprocess.") and is_constant(keyword(call, "shell"), True):
        return (
            f"`{name}` with `shell=True` runs a text that is put together; a `;` in a value runs a second "
            "command."
        )
    return None


def _fixed(node: ast.expr) -> bool:
    """Whether a text is the same in every run."""
    if isinstance(node, ast.JoinedStr):
        return not any(
            isinstance(each, ast.FormattedValue) and not _fixed(each.value) for each in node.values
        )
    if isinstance(node, ast.BinOp):
        return _fixed(node.left) and _fixed(node.right)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())


def _load(call: ast.Call, name: str) -> str | None:
    if name in _LOADERS and not any(is_constant(each) for each in call.args[:1] if name != "shelve.open"):
        return f"`{name}` runs code that its data names: whoever can change the data can run code here."
    if name in ("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load"):
        loader = keyword(call, "Loader") or (call.args[1] if len(call.args) > 1 else None)
        if not dotted(loader).endswith(_SAFE_YAML):
            return f"`{name}` can build any object, and so run code, from the text it loads."
    return None


def _temp(call: ast.Call, name: str) -> str | None:
    if name in ("tempfile.mktemp", "os.tempnam", "os.tmpnam"):
        return f"`{name}` only invents a name; somebody else can create that file first."
    return None


def _tls(call: ast.Call, name: str) -> str | None:
    if is_constant(keyword(call, "verify"), False) and _HTTP.search(name):
        return f"`{name}` with `verify=False` talks to whoever answers, and sends them what is secret."
    if name == "ssl._create_unverified_context":
        return "`ssl._create_unverified_context` accepts every certificate."
    return None


def _archive(call: ast.Call, name: str) -> str | None:
    if name == "shutil.unpack_archive" and keyword(call, "filter") is None:
        return "`shutil.unpack_archive` without a filter lets a tar archive write outside the folder."
    return None


def _debug(call: ast.Call, name: str) -> str | None:
    if (
        name.endswith(".run")
        and is_constant(keyword(call, "debug"), True)
        and name.split(".")[0] not in ("asyncio", "anyio")
    ):
        return "`debug=True` gives everybody who can reach the server a Python console."
    return None


def _bind(call: ast.Call, name: str) -> str | None:
    host = keyword(call, "host")
    address = call.args[0] if name.endswith(".bind") and call.args else None
    first = address.elts[0] if isinstance(address, ast.Tuple) and address.elts else None
    listens = name.endswith((".run", ".bind", "serve", "Server", "start_server"))
    if listens and (is_constant(host, "0.0.0.0") or is_constant(first, "0.0.0.0")):
        return "`0.0.0.0` opens the port to every network the machine is in."
    return None


def _rights(call: ast.Call, name: str) -> str | None:
    mode = call.args[-1] if call.args else keyword(call, "mode")
    value = mode.value if isinstance(mode, ast.Constant) else None
    if name.endswith("chmod") and isinstance(value, int) and value & 0o002:
        return f"Mode `{value:#o}` lets every user of the machine change it."
    return None


def _host_key(call: ast.Call, name: str) -> str | None:
    if name.endswith("set_missing_host_key_policy") and call.args:
        policy = call.args[0].func if isinstance(call.args[0], ast.Call) else call.args[0]
        if dotted(policy).endswith(("AutoAddPolicy", "WarningPolicy")):
            return "An unknown host is trusted at once, so anybody in between can pretend to be it."
    return None


def _html(call: ast.Call, name: str) -> str | None:
    text = call.args[0] if call.args else None
    built = isinstance(text, ast.JoinedStr | ast.BinOp) and not _fixed(text)
    if built and name in _TRUSTED_HTML:
        return f"`{name.rpartition('.')[2]}` declares a text safe into which values were put unescaped."
    return None


def _timeout(call: ast.Call, name: str) -> str | None:
    """A request that may wait for ever; arguments that are handed on may hold the timeout."""
    given = {each.arg for each in call.keywords}
    asks = _ASKS.fullmatch(name) and not given & {"timeout", None}
    if asks and not (name.endswith("urlopen") and len(call.args) > 2):
        return f"`{name}` without `timeout` waits for ever when the other side does not answer."
    return None


_CALLS: tuple[tuple[str, Check], ...] = (
    ("dangerous-eval", _eval),
    ("shell-injection", _shell),
    ("unsafe-load", _load),
    ("insecure-temp", _temp),
    ("tls-not-verified", _tls),
    ("unsafe-extract", _archive),
    ("debug-enabled", _debug),
    ("binds-everywhere", _bind),
    ("world-writable", _rights),
    ("unknown-host-key", _host_key),
    ("unescaped-html", _html),
    ("missing-timeout", _timeout),
)


def check_calls(source: Source) -> Iterator[Hit]:
    """Each call, compared with the list above. Tests may do what they like."""
    if source.is_test:
        return
    names = aliases(source)
    for node in source.calls:
        name = full_name(node.func, names)
        for rule, check in _CALLS if name else ():
            message = check(node, name)
            if message and not _meant(source, rule, node, name):
                yield Hit(rule, node.lineno, message, node.col_offset + 1)


def _meant(source: Source, rule: str, node: ast.Call, name: str) -> bool:
    """Whether the file shows that it is no accident: code compiled on purpose, data of the program's own."""
    data = node.args[0] if node.args else None
    names = aliases(source)
    if rule == "dangerous-eval":
        compiled = isinstance(data, ast.Call) and dotted(data.func) == "compile"
        typed = {each.arg for each in source.of(ast.arg) if "CodeType" in ast.dump(each)}
        return compiled or dotted(data) in typed | set(_opened(source, names, ("compile",)))
    if rule == "unsafe-load" and name.startswith(("pickle.", "marshal.", "dill.")):
        dumps = {f"{name.partition('.')[0]}.{word}" for word in ("dump", "dumps")}
        stored = dotted(data) in set(_opened(source, names, ("open", "io.open"))) or "open(" in ast.unparse(
            node
        )
        return not stored and any(full_name(each.func, names) in dumps for each in source.calls)
    return False


def check_tar(source: Source) -> Iterator[Hit]:
    """Archives unpacked by members' own paths."""
    names = aliases(source)
    archives = set(_opened(source, names, ("tarfile.open", "tarfile.TarFile")))
    for node in source.calls if not source.is_test else ():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("extractall", "extract")
        ):
            owner = node.func.value
            called = isinstance(owner, ast.Call) and full_name(owner.func, names).startswith("tarfile.")
            if (dotted(owner) in archives or called) and keyword(node, "filter") is None:
                message = (
                    f"`{node.func.attr}` without a filter writes wherever the archive says, also outside "
                    "the folder."
                )
                yield Hit("unsafe-extract", node.lineno, message)


def _opened(source: Source, names: dict[str, str], makers: tuple[str, ...]) -> Iterator[str]:
    """The names that hold what one of the makers made."""
    pairs: list[tuple[ast.expr | None, ast.expr | None]] = []
    pairs += [(goal, node.value) for node in source.of(ast.Assign) for goal in node.targets]
    pairs += [(node.target, node.value) for node in source.of(ast.AnnAssign)]
    pairs += [(node.optional_vars, node.context_expr) for node in source.of(ast.withitem)]
    for goal, value in pairs:
        if isinstance(value, ast.Call) and dotted(goal) and full_name(value.func, names) in makers:
            yield dotted(goal)


def check_zip(source: Source) -> Iterator[Hit]:
    """Members of an archive written to a path made from their own names."""
    for loop in source.of(ast.For) if not source.is_test else ():
        if isinstance(loop, ast.For) and re.search(
            r"\b(namelist|infolist|getmembers|getnames)\(", ast.unparse(loop.iter)
        ):
            member = dotted(loop.target)
            for node in ast.walk(loop):
                if (
                    isinstance(node, ast.Call)
                    and dotted(node.func) in ("os.path.join", "path.join")
                    and member in words(node)
                ):
                    message = (
                        f"The path is made from `{member}` as the archive names it; `../` in it leads "
                        "outside."
                    )
                    yield Hit("unsafe-extract", node.lineno, message)


def check_context(source: Source) -> Iterator[Hit]:
    """TLS contexts that accept everything, unless somebody asked for it by a switch."""
    switched = _switched_lines(source)
    for node in source.of(ast.Assign) if not source.is_test else ():
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Attribute)
            and node.lineno not in switched
        ):
            attribute = node.targets[0].attr
            if attribute == "verify_mode" and dotted(node.value).endswith("CERT_NONE"):
                yield Hit("tls-not-verified", node.lineno, "`CERT_NONE` accepts every certificate.")


def _switched_lines(source: Source) -> set[int]:
    lines: set[int] = set()
    for node in source.of(ast.If):
        if isinstance(node, ast.If) and re.search(
            r"verify|insecure|secure|cert", ast.unparse(node.test), re.IGNORECASE
        ):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


CALL_CHECKS = (check_calls, check_tar, check_zip, check_context)
