"""Drives the prompt on a pseudo-terminal: prompt.py SHERD URI HOME"""

import os
import pty
import select
import sys
import time


class Prompt:
    def __init__(self, program, uri, home):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", HOME=home, LC_ALL="C.UTF-8")
            os.execv(program, [program, uri])

    def read(self, seconds):
        """Reads for at most `seconds`; false at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.text += data.decode("utf-8", "replace")
        return bool(data)

    def expect(self, wanted, seconds=20):
        end = time.time() + seconds
        while wanted not in self.text:
            if time.time() > end or not self.read(0.1):
                sys.exit(f"prompt.py: expected {wanted!r}, got {self.text[-500:]!r}")
        self.text = self.text[self.text.index(wanted) + len(wanted):]

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def type(self, line, *wanted):
        """Types a line; after its echo the output has to hold each of `wanted`, then a new prompt."""
        self.send(line + "\r")
        for item in wanted:
            self.expect(item)
        self.expect("> ")

    def wait(self):
        while self.read(5):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def main():
    program, uri, home = sys.argv[1:]
    prompt = Prompt(program, uri, home)
    prompt.expect("test> ")
    prompt.type("[1, 2, 1 + 2]", "[ 1, 2, 3 ]")
    prompt.type("let twice = 1", "")
    prompt.type("let twice = 21", "")
    prompt.type("twice * 2", "42")
    prompt.send("var object = {\r")
    prompt.expect("... ")
    prompt.send("key: 'va' + 'lue'\r")
    prompt.expect("... ")
    prompt.type("}", "")
    prompt.type("object", "{ key: 'value' }")
    prompt.send("for (;;) {}\r")
    time.sleep(1)
    prompt.send("\x03")
    prompt.expect("interrupted")
    prompt.expect("> ")
    prompt.send("sleep(600000)\r")
    time.sleep(0.5)
    prompt.send("\x03")
    prompt.expect("interrupted")
    prompt.expect("> ")
    prompt.send("half a line\x03")
    prompt.expect("> ")
    prompt.type("db.prompt.drop(); db.prompt.insertMany(Array.from({length: 30}, (x, i) => ({_id: i}))).acknowledged", "true")
    prompt.type("db.prompt.find()", "{ _id: 19 }", 'Type "it" for more')
    prompt.type("it", "{ _id: 29 }")
    prompt.send("db.prompt.countDoc\t")
    prompt.expect("uments")
    prompt.type("()", "30")
    prompt.type("use other", "switched to db other")
    prompt.type("throw new TypeError('wr' + 'ong')", "TypeError: wrong")
    prompt.send("exit\r")
    code = prompt.wait()
    if code != 0:
        sys.exit(f"prompt.py: exit code {code}")
    with open(os.path.join(home, ".sherd_history"), encoding="utf-8") as history:
        if "twice" not in history.read():
            sys.exit("prompt.py: the history was not saved")


main()
