package app

import (
	"errors"

	"github.com/roost-dev/roost/cli/failure"
	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/server/presence"
)

// theServer is a client of the server that the user named, or else of the running server of
// this root. Without one, the error names the command that starts one.
func (a *App) theServer(what string) (*client.Client, error) {
	c, err := a.far()
	if c != nil || err != nil {
		return c, err
	}
	root, err := a.rootFolder()
	if err != nil {
		return nil, err
	}
	p, err := presence.Find(root)
	if errors.Is(err, presence.ErrAbsent) {
		return nil, &failure.Failure{Exit: failure.ExitServer, Code: "no_server", What: what, Why: err.Error() + " (" + root + ")", Retryable: true,
			Try: "roost serve  # in another terminal, or as a service; or name one with --server URL"}
	}
	if err != nil {
		return nil, err
	}
	token, err := a.ownToken()
	if err != nil {
		return nil, err
	}
	return client.New(p.URL, client.Options{Token: token, Lost: a.Lost})
}

// rootFolder is Roost's own folder, which need not exist.
func (a *App) rootFolder() (string, error) {
	root, err := a.Global(a.Flags.Root, "root")
	if err == nil && root == "" {
		root, err = a.Home("XDG_DATA_HOME", ".local/share")
	}
	return root, err
}

// OnServer does something with the running server. what is for an error.
func (a *App) OnServer(what string, f func(*client.Client) error) error {
	c, err := a.theServer(what)
	if err != nil {
		return err
	}
	defer c.Close()
	return f(c)
}
