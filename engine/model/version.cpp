namespace dcqcn {
int engine_version() { return 1; }
}  // namespace dcqcn
