#!/usr/bin/env python3
"""Checks that the tree keeps its own rules: layers, confinement of libraries, sizes, names, words.

usage: lint.py ROOT [--headers]     --headers also compiles each header alone (needs the libraries' headers)

Prints one line a finding and ends with a count; the status is 1 when there was any.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

FILE_LINES_MAX = 1000
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 6
LINE_COLUMNS_MAX = 120

# A library's header may be included in these folders only (tests of a folder count as the folder).
CONFINED = {
    "lmdb.h": {"storage"},
    "raft.h": {"replication"},
    "raft/": {"replication"},
    "nng/": {"rpc"},
    "uv.h": {"async", "wire", "replication"},
    "JavaScriptCore/": {"shell"},
    "histedit.h": {"shell"},
    "editline/": {"shell"},
    "zlib.h": {"wire"},
    "zstd.h": {"wire"},
    "snappy-c.h": {"wire"},
    "openssl/": {"bson", "security"},
    "mpdecimal.h": {"bson"},
    "pcre2.h": {"query", "expr"},
    "unicode/": {"collation", "expr"},
}
PROGRAMS = {"shardd", "configd", "routerd", "shell"}
FORBIDDEN_WORDS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
# Benchmarks measure against the bare library, simulations drive it; both may include what their subject includes.
FREE_TEST_KINDS = {"bench", "sim", "fault", "integration"}


def tracked_files(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    if out.returncode == 0:
        names = out.stdout.splitlines()
    else:
        names = [os.path.relpath(os.path.join(d, f), root) for d, _, fs in os.walk(root) for f in fs]
    return sorted(n for n in names if os.path.isfile(os.path.join(root, n)) and not n.startswith("build/"))


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def layer_table(root):
    """Layer -> layers it may include, from the link lists: what a layer USES and what those use."""
    direct = {}
    for layer in os.listdir(os.path.join(root, "common")):
        path = os.path.join(root, "common", layer, "CMakeLists.txt")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"#[^\n]*", "", file.read())
        match = re.search(r"sherd_layer\(\s*%s\b(.*?)\)" % re.escape(layer), text, re.S)
        if match is None:
            continue
        uses = re.search(r"\bUSES\b(.*?)(?=\bLIBRARIES\b|\bSOURCES\b|$)", match.group(1), re.S)
        direct[layer] = set(uses.group(1).split()) if uses else set()
    closed = {}
    for layer in direct:
        seen, todo = {layer}, list(direct[layer])
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo.extend(direct.get(one, ()))
        closed[layer] = seen
    return direct, closed


def owner(name):
    """The layer or program that a source file belongs to, and what kind of file it is."""
    parts = name.split("/")
    if parts[0] == "common" and len(parts) > 2:
        return parts[1], "layer"
    if parts[0] in PROGRAMS:
        return parts[0], "program"
    if parts[0] == "tests" and len(parts) > 3:
        return parts[2], parts[1]
    return None, "other"


def check_includes(name, text, direct, closed, report):
    layer, kind = owner(name)
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match is None:
            continue
        header = match.group(2)
        for library, homes in CONFINED.items():
            if (header == library or (library.endswith("/") and header.startswith(library))) and layer not in homes \
                    and kind not in FREE_TEST_KINDS:
                report(name, number, f"{header} belongs to {', '.join(sorted(homes))} only")
        target = header.split("/")[0]
        if match.group(1) != '"':
            continue
        if kind == "layer" and target in PROGRAMS:
            report(name, number, f"a layer includes a program's header {header}")
        if kind == "layer" and target in direct and target not in closed.get(layer, ()):
            report(name, number, f"layer {layer} may not include {header}: {target} is not among what it USES")
        if kind == "program" and target in PROGRAMS and target != layer:
            report(name, number, f"{layer} includes another program's header {header}")
        if kind == "layer" and "/" not in header and not os.path.exists(os.path.join("common", header)):
            report(name, number, f"write the include from common/: {header}")


def strip_comments(text):
    """Comments, strings and character constants blanked out, lines kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def check_functions(name, text, report):
    lines = strip_comments(text).splitlines()
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            length = number - start - 1
            head = " ".join(lines[max(0, start - 8):start - 1])
            match = re.search(r"(\w+)\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*$", head)
            function = match.group(1) if match else "?"
            if length > FUNCTION_LINES_MAX:
                report(name, start, f"function {function} has {length} lines, {FUNCTION_LINES_MAX} are the most")
            if match and re.sub(r"\([^()]*\)", "", match.group(2)).count(",") + 1 > PARAMETERS_MAX:
                report(name, start, f"function {function} has more than {PARAMETERS_MAX} parameters")
            start = None


def check_header(name, text, report):
    if name.endswith(("codes.h", "fault_points.h")):
        return
    layer_path = name[len("common/"):] if name.startswith("common/") else name
    guard = "SHERD_" + re.sub(r"[^A-Za-z0-9]", "_", layer_path).upper()
    if f"#ifndef {guard}\n#define {guard}\n" not in text:
        report(name, 1, f"the guard should be {guard}")
    if not text.startswith("/*"):
        report(name, 1, "a header starts with a comment: what it is for, who calls it, on which thread")


def check_text(name, text, report):
    for number, line in enumerate(text.splitlines(), 1):
        if FORBIDDEN_WORDS.search(line) and not name.startswith("tests/lint/"):
            report(name, number, "unfinished by its own words")
        if name.endswith((".c", ".h")) and len(line) > LINE_COLUMNS_MAX + 40:
            report(name, number, f"a line of {len(line)} columns")
        if re.search(r"https?://(deb|security|snapshot|ftp[.\w]*|http)\.debian\.org|registry\.\w+\.(org|com)", line) \
                and not name.startswith("tests/lint/"):
            report(name, number, "names a package mirror's host")
    if text and not text.endswith("\n"):
        report(name, len(text.splitlines()), "the last line has no newline")


def check_cycles(direct, report):
    state = {}

    def visit(layer, path):
        if state.get(layer) == "done":
            return
        if layer in path:
            report("common", 1, "a circle of layers: " + " -> ".join(path[path.index(layer):] + [layer]))
            return
        for below in direct.get(layer, ()):
            visit(below, path + [layer])
        state[layer] = "done"

    for layer in direct:
        visit(layer, [])


def compile_headers(root, names, report):
    flags = ["-std=c17", "-D_GNU_SOURCE", '-DSHERD_VERSION="0"', "-Icommon", "-I.", "-fsyntax-only", "-x", "c"]
    packages = ["libbson-1.0", "libuv", "raft", "lmdb", "libcrypto", "javascriptcoregtk-4.1", "libedit", "libmongoc-1.0"]
    for package in packages:
        got = subprocess.run(["pkg-config", "--cflags", package], capture_output=True, text=True)
        flags += got.stdout.split()

    def compile_one(name):
        got = subprocess.run(["gcc", *flags, name], cwd=root, capture_output=True, text=True)
        return name, got.returncode, got.stderr

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, status, errors in pool.map(compile_one, names):
            if status != 0:
                first = next((line for line in errors.splitlines() if "error" in line), errors[:200])
                report(name, 1, "does not compile alone: " + first)


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    root = os.path.abspath(sys.argv[1])
    os.chdir(root)
    findings = []

    def report(name, line, what):
        findings.append(f"{name}:{line}: {what}")

    direct, closed = layer_table(root)
    check_cycles(direct, report)
    names = tracked_files(root)
    headers = []
    for name in names:
        if not re.search(r"\.(c|h|js|mjs|py|sh|cmake|md|yml|txt)$|^deploy/|^tests/run$|Dockerfile", name):
            continue
        text = read(root, name)
        check_text(name, text, report)
        if not name.endswith((".c", ".h")):
            continue
        if len(text.splitlines()) > FILE_LINES_MAX:
            report(name, 1, f"{len(text.splitlines())} lines, {FILE_LINES_MAX} are the most")
        check_includes(name, text, direct, closed, report)
        check_functions(name, text, report)
        if name.endswith(".h"):
            check_header(name, text, report)
            if not name.endswith(("codes.h", "fault_points.h")):
                headers.append(name)
    if "--headers" in sys.argv:
        compile_headers(root, headers, report)
    for finding in findings:
        print(finding)
    print(f"lint: {len(names)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
