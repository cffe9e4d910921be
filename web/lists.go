package web

import "strings"

// trash lists deleted tasks.
func (w *Web) trash(a *asked) (*page, error) {
	all, err := w.opt.Reader.Trash(a.Context())
	return &page{Kind: "trash", Title: "Trash", Data: all}, err
}

// devices lists the browsers that are logged in.
func (w *Web) devices(a *asked) (*page, error) {
	all, err := w.opt.Devices(a.Context())
	return &page{Kind: "devices", Title: "Devices", Data: all}, err
}

// trust explains how to make a device trust the server's certificate. It needs no log-in: a device sees this page before
// it can log in.
func (w *Web) trust(*asked) (*page, error) {
	return &page{Kind: "trust", Title: "Trust this server", Data: strings.ReplaceAll(w.opt.Trust, ":", " ")}, nil
}

// sources lists the storages that tasks are read from.
func (w *Web) sources(a *asked) (*page, error) {
	all, err := w.opt.Reader.Sources(a.Context())
	return &page{Kind: "sources", Title: "Sources", Data: all}, err
}
