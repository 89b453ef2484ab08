/* cmocka needs these before it, in this order. */
#ifndef SHERD_TESTS_UNIT_CMOCKA_ALL_H
#define SHERD_TESTS_UNIT_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
