package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"taskbridge/internal/mcpclient"
)

// contentBlock is a block of a result's content (MCP 2026-07-28, Tools, "Tool Result").
type contentBlock struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MIMEType string `json:"mimeType"`
	Name     string `json:"name"`
	URI      string `json:"uri"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

// renderResult is a result as text that ends with a line break: its text blocks, a short line for each other block,
// and its structured content only if there is no text.
func renderResult(result *mcpclient.Result) string {
	var text strings.Builder
	hasText := false
	for _, raw := range result.Content {
		var block contentBlock
		if err := json.Unmarshal(raw, &block); err != nil {
			block = contentBlock{}
		}
		hasText = hasText || block.Type == "text"
		line := renderBlock(block)
		text.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			text.WriteByte('\n')
		}
	}
	if !hasText && result.StructuredContent != nil {
		var indented bytes.Buffer
		if err := json.Indent(&indented, result.StructuredContent, "", "  "); err != nil { // was read from JSON
			panic(err)
		}
		text.Write(append(indented.Bytes(), '\n'))
	}
	return text.String()
}

func renderBlock(block contentBlock) string {
	switch block.Type {
	case "text":
		return block.Text
	case "image", "audio":
		return fmt.Sprintf("[%s %s, %d bytes]", block.Type, block.MIMEType, base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(block.Data, "="))))
	case "resource_link":
		return fmt.Sprintf("[resource %s: %s]", block.Name, block.URI)
	case "resource":
		if block.Resource.Text != "" {
			return block.Resource.Text
		}
		return fmt.Sprintf("[resource %s]", block.Resource.URI)
	}
	return fmt.Sprintf("[content of type %q]", block.Type)
}

// describe is a task's status in one line.
func describe(task *mcpclient.Task) string {
	return withMessage(string(task.Status), task)
}

// describeCancelling is what a task does that was asked to stop.
func describeCancelling(task *mcpclient.Task) string { return withMessage("cancelling", task) }

func withMessage(word string, task *mcpclient.Task) string {
	if task.StatusMessage == "" || task.StatusMessage == word {
		return word
	}
	return word + ": " + task.StatusMessage
}
