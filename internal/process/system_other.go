//go:build !linux && !darwin

package process

func boot() string { return "" }

func namespace() string { return "" }

func system() string { return "" }
