/*
 * A program of one library of src/kv or src/tools and those below it: that it links shows that nothing in it calls
 * upwards.
 */
int main(void)
{
    return 0;
}
