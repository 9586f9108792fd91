/* What a format takes in memory over what it takes in its file (docs/models.md, Formats). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/forward/packed.h"

static void test_packed__shares_are_those_of_the_formats(void **state)
{
    static const struct {
        const char *format;
        double least, most;
    } shares[] = {{"MXFP4", 1, 1}, {"Q4_0", 1, 1}, {"Q5_1", 1, 1}, {"Q8_0", 1, 1}, {"Q2_K", 1, 1},
        {"Q3_K_M", 1.05, 1.06}, {"Q4_K", 1.02, 1.03}, {"Q4_K_M", 1.02, 1.03}, {"Q5_K_S", 1.02, 1.03},
        {"Q6_K", 1.009, 1.01}, {"IQ4_XS", 1.08, 1.09}, {"IQ3_S", 1.27, 1.28}, {"IQ2_XXS", 1.63, 1.64},
        {"Q4", 0, 0}, {"Q4_KM", 0, 0}, {"", 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        const double share = model_packed_share(shares[i].format);
        if (share < shares[i].least || share > shares[i].most) fail_msg("%s: %g", shares[i].format, share);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_packed__shares_are_those_of_the_formats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
