// Package toolset is the set of tools that a model is offered, in the order in which requests list them. The order is
// fixed: providers cache requests by their prefix.
package toolset

import (
	"github.com/roost-dev/roost/tool"
	"github.com/roost-dev/roost/tool/commandtool"
	"github.com/roost-dev/roost/tool/controltool"
	"github.com/roost-dev/roost/tool/filetool"
	"github.com/roost-dev/roost/tool/historytool"
	"github.com/roost-dev/roost/tool/webtool"
)

// All returns the tools of every mode.
func All(web webtool.Options) []tool.Tool {
	return append(filetool.All(),
		commandtool.New(),
		controltool.NewQuestion(),
		controltool.NewCompletion(),
		controltool.NewSwitchMode(),
		controltool.NewTodoList(),
		controltool.NewNewTask(),
		historytool.ReadOutput(),
		webtool.New(web),
	)
}
