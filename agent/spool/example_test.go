package spool_test

import (
	"fmt"
	"os"

	"github.com/roost-dev/roost/agent/spool"
)

// A run has a folder of its own while it lives. If it is killed, the next run that
// begins removes it.
func Example() {
	dir, err := spool.Make("")
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := os.Stat(dir)
	fmt.Println(info.IsDir(), err)
	fmt.Println(spool.Remove(dir))
	_, err = os.Stat(dir)
	fmt.Println(os.IsNotExist(err))
	// Output:
	// true <nil>
	// <nil>
	// true
}
