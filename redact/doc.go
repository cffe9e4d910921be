// Package redact masks secrets in text, and makes text safe for a terminal.
//
// Precision comes before recall: what is masked in a tool's output is lost to
// the model, so a rule needs a prefix that only a key has, the right alphabet and
// length, and content that is not a placeholder (few different characters,
// "EXAMPLE"). Besides the rules, the values given to New are masked exactly as
// they are; values in other encodings (base64, percent) are not found.
//
// A mask is [REDACTED:kind]. The same text gives the same masked text and count,
// whether it comes in one piece or, through a Writer, in pieces cut anywhere. A
// Writer holds back only what may still become part of a secret: some dozens of
// bytes as a rule, at most 16 KiB within a private key.
package redact
