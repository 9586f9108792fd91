/*
 * A program of one library of src/kv and those below it: that it links shows that nothing in it calls
 * upwards.
 */
int main(void)
{
    return 0;
}
