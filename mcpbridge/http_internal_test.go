package mcpbridge

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestOrigins: that Origin and Host agree is what DNS rebinding brings about, so it counts only where no name is involved.
func TestOrigins(t *testing.T) {
	transport := &httpTransport{origins: []string{"https://app.example.com"}}
	for _, test := range []struct {
		origin, host string
		allowed      bool
	}{
		{"http://127.0.0.1:8080", "127.0.0.1:8080", true},
		{"http://localhost:8080", "localhost:8080", true},
		{"http://192.0.2.7:8080", "192.0.2.7:8080", true},
		{"http://[2001:db8::1]:8080", "[2001:db8::1]:8080", true},
		{"https://app.example.com", "mcp.example.com", true},
		{"http://evil.example", "evil.example", false},
		{"http://127.0.0.1:8081", "127.0.0.1:8080", false},
		{"null", "127.0.0.1:8080", false},
	} {
		assert.Equal(t, test.allowed, transport.allows(test.origin, test.host), "%s at %s", test.origin, test.host)
	}
}
