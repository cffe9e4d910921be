package config_test

import (
	"testing"

	"github.com/roost-dev/roost/config"
)

func TestBytes(t *testing.T) {
	for text, want := range map[string]int64{
		"2MiB": 2 << 20, "64 mb": 64e6, "1048576": 1 << 20, "1GiB": 1 << 30, "7b": 7, "3 KiB": 3 << 10, "0": -1, "0MiB": -1, " 5kb ": 5000,
	} {
		if got, err := config.Bytes(text); got != want || err != nil {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "much", "9999999999GiB", "2TiB", "1 2"} {
		if got, err := config.Bytes(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}
