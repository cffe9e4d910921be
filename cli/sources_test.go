package cli

import "testing"

func TestSizesInWords(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 kB", 9949: "9.9 kB", 9950: "10 kB", 999_499: "999 kB", 999_500: "1.0 MB", 5_200_000_000: "5.2 GB", 9e18: "9000000 TB",
	} {
		if got := sizeOf(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
