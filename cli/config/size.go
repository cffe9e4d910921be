package config

import (
	"fmt"
	"strconv"
	"strings"
)

// sizeUnits are what a size may end in, in bytes. A unit of ten is one of ten.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"b", 1}, {"", 1},
}

// Bytes reads a size such as 2MiB, 64 MB or 1048576. 0 means none, and is returned as -1: where sizes are kept, 0
// means "not set".
func Bytes(text string) (int64, error) {
	word := strings.ToLower(strings.TrimSpace(text))
	for _, u := range sizeUnits {
		digits, is := strings.CutSuffix(word, u.name)
		if !is {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		switch {
		case err != nil || n < 0 || n > (1<<60)/u.bytes:
			return 0, fmt.Errorf("want a size such as 2MiB or 64MiB")
		case n == 0:
			return -1, nil
		}
		return n * u.bytes, nil
	}
	return 0, nil
}

func size(text string) error {
	_, err := Bytes(text)
	return err
}
