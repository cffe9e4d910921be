package web

// trash lists deleted tasks.
func (w *Web) trash(a *asked) (*page, error) {
	all, err := w.opt.Reader.Trash(a.Context())
	return &page{Kind: "trash", Title: "Trash", Data: all}, err
}

// sources lists the storages that tasks are read from.
func (w *Web) sources(a *asked) (*page, error) {
	all, err := w.opt.Reader.Sources(a.Context())
	return &page{Kind: "sources", Title: "Sources", Data: all}, err
}
