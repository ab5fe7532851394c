package codec

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// serverTimeout is how long a codec server may take for the payloads of one message.
const serverTimeout = 5 * time.Second

// Server is the codec of a codec server, as Temporal's CLI and UI use it: payloads are posted to ENDPOINT/encode and
// ENDPOINT/decode.
type Server struct {
	endpoint      string
	authorization string
	http          http.Client
}

var _ Namespaced = (*Server)(nil)

// NewServer is the codec of the server at an http or https URL. "{namespace}" in it stands for the namespace, which is also
// sent in the header X-Namespace. authorization is the header Authorization; "" sends none.
func NewServer(endpoint, authorization string) (*Server, error) {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, errors.New("the address of the codec server is no http or https URL: write a URL such as https://codec.example.com/{namespace}")
	}
	return &Server{endpoint, authorization, http.Client{Transport: refusing5xx{}, Timeout: serverTimeout}}, nil
}

// URL is where the payloads of a namespace go, without a password.
func (s *Server) URL(namespace string) string {
	parsed, _ := url.Parse(s.in(namespace)) // as NewServer has
	return parsed.Redacted()
}

func (s *Server) in(namespace string) string {
	return strings.ReplaceAll(s.endpoint, "{namespace}", url.PathEscape(namespace))
}

// Encode implements converter.PayloadCodec for the namespace "default".
func (s *Server) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return s.In(client.DefaultNamespace).Encode(payloads)
}

// Decode implements converter.PayloadCodec for the namespace "default".
func (s *Server) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return s.In(client.DefaultNamespace).Decode(payloads)
}

// In is the codec for one namespace.
func (s *Server) In(namespace string) converter.PayloadCodec {
	return converter.NewRemotePayloadCodec(converter.RemotePayloadCodecOptions{
		Endpoint: s.in(namespace),
		ModifyRequest: func(r *http.Request) error {
			r.Header.Set("X-Namespace", namespace)
			if s.authorization != "" {
				r.Header.Set("Authorization", s.authorization)
			}
			return nil
		},
		Client: s.http,
	})
}

// refusing5xx makes answers that may be better later errors of the transport, so that they can be told from others.
type refusing5xx struct{}

func (refusing5xx) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil && (response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests) {
		_ = response.Body.Close()
		return nil, errors.New(response.Status)
	}
	return response, err
}

// passing reports whether an error of a codec may be gone at the next attempt.
func passing(err error) bool {
	var transport *url.Error
	return errors.As(err, &transport)
}
