// A program without any of what check_hardening.sh looks for.
int main() { return 0; }
