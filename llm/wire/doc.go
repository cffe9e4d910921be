// Package wire holds what all HTTP model providers share: making a call, reading
// server-sent events, noticing a stalled stream, classifying errors by status and
// wording, waiting between attempts, sending bodies of megabytes without copying them,
// translating only the messages that are new, and keeping keys out of error texts.
//
// It reads Roo's stored blocks and no provider's messages. Only a History keeps state
// between calls. Nothing here logs or starts a goroutine that outlives a call.
package wire
