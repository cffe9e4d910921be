package journal

// Hash names a blob: the lower-case hex SHA-256 of its bytes.
type Hash string

// Valid reports whether h is a well-formed name. Hashes come out of log lines
// that anyone may have edited, and become paths: check before use.
func (h Hash) Valid() bool {
	if len(h) != 64 {
		return false
	}
	for i := range len(h) {
		c := h[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
