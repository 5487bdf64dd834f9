"""What the sandbox has of Python's library. A test asks the interpreter whether this is so."""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Final

_NAMES: Final = """
    asyncio: gather run sleep
    base64: a85decode a85encode b16decode b16encode b32decode b32encode b32hexdecode
        b32hexencode b64decode b64encode b85decode b85encode decodebytes encodebytes
        standard_b64decode standard_b64encode urlsafe_b64decode urlsafe_b64encode
    bisect: bisect bisect_left bisect_right insort insort_left insort_right
    collections: Counter defaultdict deque namedtuple
    copy: copy deepcopy
    csv: Dialect DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE
        QUOTE_NONNUMERIC excel excel_tab field_size_limit get_dialect list_dialects reader
        unix_dialect writer
    dataclasses: FrozenInstanceError MISSING dataclass field is_dataclass
    datetime: date datetime time timedelta timezone
    decimal: BasicContext Clamped Context ConversionSyntax Decimal DecimalException
        DecimalTuple DefaultContext DivisionByZero DivisionImpossible DivisionUndefined
        ExtendedContext FloatOperation HAVE_CONTEXTVAR HAVE_THREADS Inexact InvalidContext
        InvalidOperation MAX_EMAX MAX_PREC MIN_EMIN MIN_ETINY Overflow ROUND_05UP ROUND_CEILING
        ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP Rounded
        Subnormal Underflow getcontext localcontext setcontext
    functools: cache lru_cache partial reduce
    hashlib: algorithms_available algorithms_guaranteed blake2b blake2s md5 new pbkdf2_hmac
        sha1 sha224 sha256 sha384 sha3_224 sha3_256 sha3_384 sha3_512 sha512 shake_128
        shake_256
    itertools: accumulate chain combinations combinations_with_replacement compress count cycle
        dropwhile filterfalse groupby islice pairwise permutations product repeat starmap
        takewhile tee zip_longest
    json: JSONDecodeError dump dumps load loads
    math: acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist
        e erf erfc exp exp2 expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf
        isclose isfinite isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan
        nextafter perm pi pow prod radians remainder sin sinh sqrt tan tanh tau trunc ulp
    random: Random betavariate choice choices expovariate gammavariate gauss getrandbits
        getstate lognormvariate normalvariate paretovariate randbytes randint random randrange
        sample seed setstate shuffle triangular uniform vonmisesvariate weibullvariate
    re: A ASCII DOTALL I IGNORECASE M MULTILINE Match NOFLAG Pattern S compile error escape
        findall finditer fullmatch match search split sub
    time: altzone asctime ctime daylight gmtime localtime mktime monotonic monotonic_ns
        perf_counter perf_counter_ns process_time process_time_ns sleep strftime strptime
        thread_time thread_time_ns time time_ns timezone tzname
    typing: Annotated Any Callable ClassVar Dict Final FrozenSet Generator Generic Iterable
        Iterator List Literal Mapping Never NoReturn Optional Protocol Self Sequence Set
        TYPE_CHECKING Tuple Type TypeVar Union
    unicodedata: category combining is_normalized lookup name normalize unidata_version
"""
_MEMBERS: Final = """
    add_note bit_count bit_length ctime denominator difference_update endpos expand format_map
    from_bytes fromisocalendar fromordinal fromtimestamp fromutc groupindex intersection_update
    is_integer isocalendar lastgroup lastindex maketrans numerator pos re regs scanner step
    stop subn symmetric_difference_update timetuple to_bytes toordinal translate
    utcfromtimestamp utcnow utctimetuple with_traceback
"""
_BUILTINS: Final = """
    BaseExceptionGroup BlockingIOError BrokenPipeError BufferError BytesWarning
    ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError
    ConnectionResetError DeprecationWarning EOFError EncodingWarning EnvironmentError
    ExceptionGroup FloatingPointError FutureWarning GeneratorExit IOError ImportWarning
    IndentationError InterruptedError PendingDeprecationWarning ProcessLookupError
    ReferenceError ResourceWarning RuntimeWarning StopAsyncIteration SyntaxWarning SystemError
    TabError UnicodeError UnicodeTranslateError UnicodeWarning UserWarning Warning aiter anext
    ascii breakpoint bytearray callable classmethod compile copyright credits delattr dir exit
    globals help input issubclass license memoryview quit staticmethod super vars
"""


_PARTS: Final = re.split(r"(\w+):", _NAMES)
MODULES: Final[Mapping[str, frozenset[str]]] = {
    module: frozenset(names.split())
    for module, names in zip(_PARTS[1::2], _PARTS[2::2], strict=True)
}
"""The names of the modules that a script can import, and what each of them has."""
MISSING_MEMBERS: Final = frozenset(_MEMBERS.split())
"""Members of Python's own types that no type of the sandbox has."""
MISSING_BUILTINS: Final = frozenset(_BUILTINS.split())
"""Built-in names of Python that the sandbox does not have."""
MISSING_ARGUMENTS: Final[Mapping[str, frozenset[str]]] = {
    "dumps": frozenset({"check_circular", "cls", "default"}),
    "loads": frozenset({"cls", "object_hook", "object_pairs_hook", "parse_constant"}),
    "dataclass": frozenset({"kw_only", "order", "slots"}),
    "field": frozenset({"init", "repr"}),
}
"""Arguments of functions that they do not take in the sandbox."""
_METHODS: Final = """
    __aenter__ __aexit__ __aiter__ __anext__ __await__ __bool__ __bytes__ __class_getitem__
    __complex__ __del__ __delattr__ __delitem__ __format__ __ge__ __getattr__ __getattribute__
    __gt__ __iadd__ __iand__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__
    __init_subclass__ __ior__ __ipow__ __irshift__ __isub__ __itruediv__ __ixor__ __le__ __len__
    __lt__ __missing__ __ne__ __new__ __reversed__ __set_name__ __setattr__
"""
MISSING_METHODS: Final = frozenset(_METHODS.split())
"""Special methods that a class may define, and that the sandbox never calls."""
ENCODINGS: Final = re.compile(
    r"(u|utf[-_ ]?)(8|(16|32)([-_ ]?[bl]e)?)|(us[-_ ])?ascii|646", re.IGNORECASE
)
"""The encodings of the sandbox."""
_VALUES: Final = (
    *(str, bytes, int, float, list, dict, tuple, set, frozenset, date, datetime, time, timedelta),
    *(Decimal, re.Pattern, re.Match, deque, Counter, defaultdict),
)
METHODS: Final = frozenset(
    name
    for name in {name for type in _VALUES for name in dir(type)}
    if not name.startswith("_") and all(callable(getattr(type, name, callable)) for type in _VALUES)
)
"""The methods of Python's own types that are no other member of one of them. In the sandbox they are called,
and are no values."""
INSTEAD: Final[Mapping[str, str]] = {
    "aiohttp": "use http.get and the like",
    "abc": "use plain functions",
    "binascii": "use bytes.hex, bytes.fromhex and base64",
    "calendar": "use datetime",
    "collections.abc": "use typing",
    "concurrent": "asyncio.gather runs requests side by side",
    "contextlib": "use try and finally",
    "difflib": "compare the lines yourself",
    "email": "use datetime.strftime",
    "enum": "use Literal or constants",
    "fractions": "use decimal",
    "gzip": "there is no compression",
    "heapq": "use bisect or sorted",
    "hmac": "a script never has the value of a secret, so it cannot sign; a Python function can",
    "html": "use str.replace",
    "httpx": "use http.get and the like",
    "io": "csv.reader takes a list of lines, and str.splitlines makes one",
    "ipaddress": "use str.split and int",
    "locale": "use a format such as f'{value:,.2f}'",
    "logging": "use log(data, level) or print",
    "multiprocessing": "asyncio.gather runs requests side by side",
    "operator": "use a lambda",
    "os": "there are no files and no environment; use secret(name) for a secret",
    "pathlib": "there are no files",
    "pickle": "use json",
    "pprint": "use json.dumps(value, indent=2)",
    "requests": "use http.get and the like",
    "secrets": "there is no randomness for secrets; a tenant stores them, and secret(name) names one",
    "shlex": "use str.split",
    "shutil": "there are no files",
    "socket": "use http.get and the like",
    "sqlite3": "there are no files",
    "statistics": "use sum, sorted and math",
    "string": "write the characters",
    "struct": "use bytes.hex and int(text, 16)",
    "subprocess": "there are no other processes",
    "sys": "there is no process to ask",
    "tempfile": "there are no files",
    "textwrap": "use str.split and join",
    "threading": "asyncio.gather runs requests side by side",
    "traceback": "use str(error)",
    "types": "use a dataclass",
    "urllib": "use quote(value), and params and data={…} of a request",
    "urllib3": "use http.get and the like",
    "uuid": "use new_uuid()",
    "warnings": "use log(data, level)",
    "xml": "use re, or a Python function",
    "zlib": "there is no compression",
    "zoneinfo": "use in_zone(moment, zone)",
}
"""What scripts use in the place of other modules."""
PACKAGES: Final = "there are no packages; a Python function can use them"
"""What is said of modules that are not of Python's library."""
INSTEAD_OF_NAMES: Final[Mapping[str, str]] = {
    "ChainMap": "{**first, **second}",
    "NamedTuple": "a dataclass",
    "OrderedDict": "a dict, which keeps the order",
    "TypedDict": "a dataclass",
    "UTC": "timezone.utc",
    "VERBOSE": "a pattern in one line",
    "X": "a pattern in one line",
    "asdict": "the dataclass, which becomes JSON by itself",
    "batched": "slices: values[at : at + 10]",
    "bit_length": "len(f'{value:b}')",
    "bytearray": "bytes",
    "cached_property": "cache",
    "callable": "isinstance of what it should be",
    "cast": "an annotation: value: int = other",
    "classmethod": "a function",
    "cmp_to_key": "a key",
    "ctime": "isoformat or strftime",
    "format_map": "format(**values)",
    "from_bytes": "int(value.hex(), 16)",
    "fromtimestamp": "datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=value)",
    "is_integer": "value == int(value)",
    "isocalendar": "strftime('%G-W%V')",
    "maketrans": "replace",
    "staticmethod": "a function",
    "subn": "sub",
    "super": "a function",
    "to_bytes": "bytes.fromhex(f'{value:04x}')",
    "total_ordering": "a key for sorted",
    "translate": "replace",
    "utcfromtimestamp": "datetime(1970, 1, 1) + timedelta(seconds=value)",
    "utcnow": "datetime.now(timezone.utc)",
    "wraps": "no decorator",
}
"""What scripts use in the place of other names."""
