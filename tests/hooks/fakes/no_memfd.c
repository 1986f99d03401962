// SPDX-License-Identifier: Apache-2.0
/* Preloaded in front of the hooks: a system that refuses anonymous files, as some sandboxes do. */
#include <errno.h>

int memfd_create(const char *name, unsigned int flags);

int memfd_create(const char *name, unsigned int flags)
{
    (void)name;
    (void)flags;
    errno = EPERM;
    return -1;
}
