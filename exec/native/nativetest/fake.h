/* A backend without arithmetic, for tests of what calls one. See Fake in fake.go. */
#ifndef TOKENROUTER_FAKE_H
#define TOKENROUTER_FAKE_H

#include "native.h"

const tr_backend *tr_fake_backend(void);

#endif
