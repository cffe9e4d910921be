// Command roost runs the tasks of coding agents and keeps them.
package main

import (
	"os"

	"github.com/roost-dev/roost/cli"
)

func main() { os.Exit(cli.Main()) }
