//go:build !unix && !windows

package process

func boot() string { return "" }

func namespace() string { return "" }

func system() string { return "" }

func alive(int) bool { return true }

func start(int) int64 { return 0 }
