/*
 * e^x in F32, the same steps in every level: x = n ln 2 + r, a polynomial for e^r, 2^n through the exponent
 * bits. The polynomial is Cephes' expf (relative error below 2e-7); below EXP_LOW the result is 0, above
 * EXP_HIGH that of EXP_HIGH.
 */
#ifndef KVIST_MODEL_CPU_EXP_H
#define KVIST_MODEL_CPU_EXP_H

#define EXP_LOW    (-87.0f)
#define EXP_HIGH   88.0f
#define EXP_LOG2E  1.44269504088896341f
#define EXP_LN2_HI 0.693359375f
#define EXP_LN2_LO (-2.12194440e-4f)
#define EXP_ROUND  12582912.0f /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
#define EXP_C5     1.9875691500e-4f
#define EXP_C4     1.3981999507e-3f
#define EXP_C3     8.3334519073e-3f
#define EXP_C2     4.1665795894e-2f
#define EXP_C1     1.6666665459e-1f
#define EXP_C0     5.0000001201e-1f

/* tanh's gelu: x * sigmoid(2 u), u = GELU_A * (x + GELU_B * x^3). */
#define GELU_A 0.79788456080286535588f
#define GELU_B 0.044715f

#endif
