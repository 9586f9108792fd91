/* Every role can be read on the backgrounds that its palette is for: contrast as WCAG 2 counts it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tui/terminal/palette.h"

/* xterm's 256 colours from 16 on: a cube of 6, then greys. */
static void rgb_of(short colour, int rgb[3])
{
    static const int levels[] = {0, 95, 135, 175, 215, 255};
    const int i = colour - 16;
    for (int k = 0; k < 3; k++) rgb[k] = 8 + 10 * (colour - 232);
    if (colour >= 232) return;
    rgb[0] = levels[i / 36];
    rgb[1] = levels[i / 6 % 6];
    rgb[2] = levels[i % 6];
}

static double luminance(const int rgb[3])
{
    static const double weight[] = {.2126, .7152, .0722};
    double sum = 0;
    for (int k = 0; k < 3; k++) {
        const double v = rgb[k] / 255.;
        sum += weight[k] * (v <= .03928 ? v / 12.92 : pow((v + .055) / 1.055, 2.4));
    }
    return sum;
}

static double contrast(const int a[3], const int b[3])
{
    const double x = luminance(a), y = luminance(b);
    return x > y ? (x + .05) / (y + .05) : (y + .05) / (x + .05);
}

static void check(tui_background background, const int (*on)[3], size_t n, double least)
{
    for (int role = TUI_TEXT + 1; role < TUI_N_ROLES; role++) {
        int rgb[3];
        rgb_of(tui_palette_256(background, (tui_role)role), rgb);
        for (size_t i = 0; i < n; i++) {
            const double ratio = contrast(rgb, on[i]);
            if (!(ratio >= least))
                fail_msg("palette %d, role %d on #%02x%02x%02x: %.2f, less than %.1f", background, role,
                    on[i][0], on[i][1], on[i][2], ratio, least);
        }
    }
}

static void test_palette__every_role_can_be_read(void **state)
{
    static const int dark[][3] = {{0, 0, 0}, {30, 30, 30}, {0, 43, 54}},
                     light[][3] = {{255, 255, 255}, {250, 250, 250}, {253, 246, 227}},
                     both[][3] = {{0, 0, 0}, {255, 255, 255}};
    check(TUI_BACKGROUND_DARK, dark, 3, 4.5);
    check(TUI_BACKGROUND_LIGHT, light, 3, 4.5);
    check(TUI_BACKGROUND_UNKNOWN, both, 2, 4.4);
}

static void test_palette__what_colorfgbg_says(void **state)
{
    assert_int_equal(tui_background_of("15;0"), TUI_BACKGROUND_DARK);
    assert_int_equal(tui_background_of("0;15"), TUI_BACKGROUND_LIGHT);
    assert_int_equal(tui_background_of("0;default;7"), TUI_BACKGROUND_LIGHT);
    assert_int_equal(tui_background_of("12;8"), TUI_BACKGROUND_DARK);
    static const char *const unknown[] = {NULL, "", "15", "15;", "0;default", "0;16", "0;-1", "0;7x", ";;"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_int_equal(tui_background_of(unknown[i]), TUI_BACKGROUND_UNKNOWN);
}

static void test_palette__what_a_terminal_answers(void **state)
{
    static const struct {
        const char *answer;
        tui_background background;
    } cases[] = {
        {"rgb:0000/0000/0000", TUI_BACKGROUND_DARK},
        {"rgb:1e1e/1e1e/1e1e", TUI_BACKGROUND_DARK},
        {"rgb:00/2B/36", TUI_BACKGROUND_DARK},
        {"rgb:ffff/ffff/ffff", TUI_BACKGROUND_LIGHT},
        {"rgb:fd/f6/e3", TUI_BACKGROUND_LIGHT},
        {"rgb:f/f/f", TUI_BACKGROUND_LIGHT},
        {"rgba:ffff/ffff/ffff/ffff", TUI_BACKGROUND_LIGHT},
        {"rgba:0000/0000/0000/ffff", TUI_BACKGROUND_DARK},
        {"", TUI_BACKGROUND_UNKNOWN},
        {"rgb:", TUI_BACKGROUND_UNKNOWN},
        {"rgb:ffff/ffff", TUI_BACKGROUND_UNKNOWN},
        {"rgb:ffff//ffff", TUI_BACKGROUND_UNKNOWN},
        {"rgb:fffff/ffff/ffff", TUI_BACKGROUND_UNKNOWN},
        {"rgb:ffff/ffff/gggg", TUI_BACKGROUND_UNKNOWN},
        {"rgb:ff/ff/ffx", TUI_BACKGROUND_UNKNOWN},
        {"#ffffff", TUI_BACKGROUND_UNKNOWN},
        {"?", TUI_BACKGROUND_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (tui_background_of_answer(cases[i].answer, strlen(cases[i].answer)) != cases[i].background)
            fail_msg("\"%s\"", cases[i].answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_palette__every_role_can_be_read),
        cmocka_unit_test(test_palette__what_colorfgbg_says),
        cmocka_unit_test(test_palette__what_a_terminal_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
