namespace shapes {
template <class T> class Box : public Base<T> {
public:
    explicit Box(T value) : value_(value) { init(); }
    ~Box() { release(); }
    T get() const { return value_; }
    void set(T value);
    bool operator==(const Box &other) const { return value_ == other.value_; }

private:
    T value_;
};
} // namespace shapes

template <class T> void shapes::Box<T>::set(T value)
{
    for (auto &item : items_) item->touch(value);
    try {
        auto add = [&](int x) { return x + 1; };
        value_ = add(static_cast<int>(value));
        std::vector<int> v(3, 0);
        Box *other = new Box(value);
    } catch (const std::exception &e) {
        throw;
    }
    if (auto it = find(value); it != end()) delete it;
}
