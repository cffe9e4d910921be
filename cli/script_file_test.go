package cli

import (
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

func write(ts *testscript.TestScript, name string, data []byte) {
	ts.Check(os.WriteFile(ts.MkAbs(name), data, 0o600))
}

func code(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}
