"""Facts about packages: which distribution brings a module, and what Python lost and gained over time."""

from functools import cache
from importlib.metadata import packages_distributions

DISTRIBUTIONS: dict[str, tuple[str, ...]] = {
    "attr": ("attrs",),
    "bs4": ("beautifulsoup4",),
    "cairo": ("pycairo",),
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python"),
    "Crypto": ("pycryptodome", "pycrypto"),
    "dateutil": ("python-dateutil",),
    "django": ("Django",),
    "docx": ("python-docx",),
    "dotenv": ("python-dotenv",),
    "fitz": ("PyMuPDF",),
    "git": ("GitPython",),
    "github": ("PyGithub",),
    "google": ("google-api-python-client", "google-cloud-storage", "protobuf", "google-auth"),
    "grpc": ("grpcio",),
    "igraph": ("python-igraph", "igraph"),
    "jose": ("python-jose",),
    "jwt": ("PyJWT",),
    "ldap": ("python-ldap",),
    "magic": ("python-magic",),
    "markdown": ("Markdown",),
    "MySQLdb": ("mysqlclient",),
    "nacl": ("PyNaCl",),
    "OpenSSL": ("pyOpenSSL",),
    "PIL": ("Pillow",),
    "pkg_resources": ("setuptools",),
    "psycopg2": ("psycopg2-binary", "psycopg2"),
    "pydantic_core": ("pydantic",),
    "pytest": ("pytest",),
    "_pytest": ("pytest",),
    "ruamel": ("ruamel.yaml",),
    "serial": ("pyserial",),
    "setuptools": ("setuptools",),
    "skimage": ("scikit-image",),
    "sklearn": ("scikit-learn",),
    "slugify": ("python-slugify",),
    "socks": ("PySocks", "socksio"),
    "starlette": ("starlette", "fastapi"),
    "telegram": ("python-telegram-bot",),
    "tree_sitter": ("tree-sitter",),
    "usb": ("pyusb",),
    "uvloop": ("uvloop", "uvicorn"),
    "win32api": ("pywin32",),
    "wx": ("wxPython",),
    "Xlib": ("python-xlib",),
    "yaml": ("PyYAML",),
    "zmq": ("pyzmq",),
    "zope": ("zope.interface",),
}

# Module: the minor version of Python 3 that no longer has it.
REMOVED_MODULES: dict[str, int] = {
    "parser": 10,
    "symbol": 10,
    "formatter": 10,
    "asynchat": 12,
    "asyncore": 12,
    "distutils": 12,
    "imp": 12,
    "smtpd": 12,
    "aifc": 13,
    "audioop": 13,
    "cgi": 13,
    "cgitb": 13,
    "chunk": 13,
    "crypt": 13,
    "imghdr": 13,
    "mailcap": 13,
    "msilib": 13,
    "nis": 13,
    "nntplib": 13,
    "ossaudiodev": 13,
    "pipes": 13,
    "sndhdr": 13,
    "spwd": 13,
    "sunau": 13,
    "telnetlib": 13,
    "uu": 13,
    "xdrlib": 13,
    "lib2to3": 13,
}

REMOVED_NAMES: dict[str, int] = {
    **{
        f"collections.{name}": 10
        for name in [
            "Mapping",
            "MutableMapping",
            "Sequence",
            "MutableSequence",
            "Iterable",
            "Iterator",
            "Callable",
            "Set",
            "Hashable",
            "Sized",
        ]
    },
    "fractions.gcd": 9,
    "inspect.getargspec": 11,
    "asyncio.coroutine": 11,
    "cgi.escape": 8,
    "time.clock": 3,
    "unittest.makeSuite": 13,
    "locale.format": 12,
}

# Module: the minor version of Python 3 that first has it.
YOUNG_MODULES: dict[str, int] = {
    "zoneinfo": 9,
    "graphlib": 9,
    "tomllib": 11,
    "compression": 14,
    "annotationlib": 14,
}

# Modules that come with Python or with the program it runs in; no package brings them.
_HOSTS = "pyodide js pyscript machine micropython bpy bmesh mathutils gi maya hou nuke unreal idaapi gdb lldb"
BUILT_IN = frozenset(YOUNG_MODULES) | frozenset(_HOSTS.split())


@cache
def _installed() -> dict[str, list[str]]:
    return dict(packages_distributions())


def provided_by(module: str) -> list[str]:
    """The installed distributions that bring a module: a help where the table above does not know it."""
    return _installed().get(module, [])
