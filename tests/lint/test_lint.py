#!/usr/bin/env python3
"""Shows that each rule of lint.py finds what it is there to find, on a small tree with one fault at a time."""
import os
import subprocess
import sys
import tempfile

LINT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lint.py")
GOOD_HEADER = "/* A header. */\n#ifndef SHERD_BASE_A_H\n#define SHERD_BASE_A_H\nint a(void);\n#endif\n"
TREE = {
    "common/base/CMakeLists.txt": "sherd_layer(base\n  SOURCES a.c)\n",
    "common/base/a.h": GOOD_HEADER,
    "common/base/a.c": '#include "base/a.h"\nint a(void)\n{\n    return 1;\n}\n',
    "common/bson/CMakeLists.txt": "sherd_layer(bson\n  SOURCES b.c\n  USES base\n  LIBRARIES x)\n",
    "common/bson/b.c": '#include "base/a.h"\n',
}
FAULTS = [
    ("common/base/a.c", '#include "bson/b.h"\n', "may not include"),
    ("common/base/a.c", "#include <lmdb.h>\n", "belongs to storage only"),
    ("common/base/a.c", '#include "shardd/x.h"\n', "a program's header"),
    ("common/base/a.c", "int f(void)\n{\n" + "    a();\n" * 71 + "}\n", "has 71 lines"),
    ("common/base/a.c", "int f(int a, int b, int c, int d, int e, int f, int g)\n{\n}\n", "more than 6 parameters"),
    ("common/base/a.c", "int x;\n" * 1001, "1001 lines"),
    ("common/base/a.c", "/* TO" "DO: finish */\n", "unfinished"),
    ("common/base/a.c", "int x;", "no newline"),
    ("common/base/a.h", "#ifndef A_H\n#define A_H\n#endif\n", "the guard should be SHERD_BASE_A_H"),
    ("common/base/CMakeLists.txt", "sherd_layer(base\n  SOURCES a.c\n  USES bson)\n", "a circle of layers"),
]


def run(tree):
    with tempfile.TemporaryDirectory() as root:
        for name, text in tree.items():
            os.makedirs(os.path.join(root, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                file.write(text)
        got = subprocess.run([sys.executable, LINT, root], capture_output=True, text=True)
        return got.returncode, got.stdout + got.stderr


def main():
    failed = 0
    status, output = run(TREE)
    if status != 0:
        failed += 1
        print("the good tree is refused:\n" + output)
    for name, text, wanted in FAULTS:
        status, output = run({**TREE, name: text})
        if status != 1 or wanted not in output:
            failed += 1
            print(f"not found: {wanted!r}; lint said ({status}):\n{output}")
    print(f"{len(FAULTS) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
