package slash

// builtIn are the commands that are there without a file.
var builtIn = map[string]Command{
	"init": {
		Name: "init", Source: "built-in",
		Description: "Look through the workspace and write AGENTS.md for the agents that come after",
		Content: "Write or improve the file AGENTS.md in the root of the workspace. It is for an agent that has never seen " +
			"this project: what it must know to work in it.\n\n" +
			"1. Read what is there: AGENTS.md and other rule files, README, the build and test settings, and enough of the " +
			"code to know its parts.\n" +
			"2. Keep what is right in an AGENTS.md that exists. Take out what is wrong or what anybody would guess.\n" +
			"3. Write down, short and checked against the code: how to build, how to run all tests and how to run one, how " +
			"to check style; " +
			"the parts of the project and which may use which; conventions that differ from what is usual; traps that cost time.\n" +
			"4. Invent nothing. A command that you have not seen in the project does not belong there.",
	},
}
