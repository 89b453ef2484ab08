/* Built with the address sanitizer only: the JavaScript engine keeps some of its memory until the process ends, and a
 * leak would be the exit code of every script. */

/* The leak sanitizer calls both. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libjavascriptcoregtk\n";
}

const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}
