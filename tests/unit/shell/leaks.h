/* The JavaScript engine keeps some of its memory until the process ends. Included once by each test that starts one. */
#ifndef SHERD_TESTS_UNIT_SHELL_LEAKS_H
#define SHERD_TESTS_UNIT_SHELL_LEAKS_H

/* The leak sanitizer calls it. */
const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libjavascriptcoregtk\n";
}

#endif
