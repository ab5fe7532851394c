package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc/codes"

	"taskbridge/mcpbridge/codec"
	"taskbridge/signals"
)

// probeTimeout is how long a server that did not answer as Temporal may take to show what it is.
const probeTimeout = 5 * time.Second

func (p place) address() string  { return cmp.Or(p.options.HostPort, client.DefaultHostPort) }
func (p place) tls() *tls.Config { return p.options.ConnectionOptions.TLS }

// namespace names the namespace, and what it is needed for.
func (p place) namespace() string {
	if len(p.tools) == 0 {
		return strconv.Quote(p.options.Namespace)
	}
	return fmt.Sprintf("%q, which the catalog names for %s", p.options.Namespace, strings.Join(p.tools, ", "))
}

// errorf is an error of this place that says where it is configured.
func (p place) errorf(format string, args ...any) error {
	if p.profile != "" {
		format, args = "profile %q: "+format, append([]any{p.profile}, args...)
	}
	return fmt.Errorf("temporal connection: "+format, args...)
}

// check checks that the server has the namespace and lets us in, and that the codec works. Errors that may pass are none:
// they are met again where they matter.
func (p place) check(ctx context.Context, connected client.Client) error {
	_, err := connected.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: p.options.Namespace})
	if problem := p.refusal(err); problem != nil {
		return problem
	}
	if p.codec == nil {
		return nil
	}
	err = codec.Check(p.codec, p.options.Namespace)
	if server, remote := p.codec.(*codec.Server); remote && err != nil {
		return p.explainCodec(server.URL(p.options.Namespace), err)
	}
	return err
}

func (p place) explainCodec(address string, err error) error {
	var transport *url.Error
	text := err.Error()
	switch {
	case errors.As(err, &transport):
		return p.errorf("the codec server at %s does not answer: %w\nStart it, or correct TEMPORAL_CODEC_ENDPOINT (in a profile, codec.endpoint)", address, err)
	case strings.Contains(text, http.StatusText(http.StatusUnauthorized)), strings.Contains(text, http.StatusText(http.StatusForbidden)):
		return p.errorf("the codec server at %s refuses us: %w\nTEMPORAL_CODEC_AUTH (in a profile, codec.auth) has to be the header Authorization that it wants", address, err)
	}
	return p.errorf("the codec server at %s does not do its work: %w\nCorrect it, or TEMPORAL_CODEC_ENDPOINT (in a profile, codec.endpoint)", address, err)
}

// refusal says what is wrong if Temporal answered with an error that will not pass; nil if it did not.
func (p place) refusal(err error) error {
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) {
		return fmt.Errorf("temporal has no namespace %s: create it with `temporal operator namespace create -n %s`", p.namespace(), p.options.Namespace)
	}
	switch serviceerror.ToStatus(err).Code() {
	case codes.Unauthenticated, codes.PermissionDenied:
		return p.errorf("%s does not let us into namespace %s: %w\n%s", p.address(), p.namespace(), err, p.credentialsHint())
	case codes.Unimplemented:
		return p.errorf("what answers at %s is not Temporal: %w\nName the gRPC address of a server with TEMPORAL_ADDRESS", p.address(), err)
	}
	return nil
}

func (p place) credentialsHint() string {
	switch {
	case p.options.Credentials != nil:
		return "TEMPORAL_API_KEY (in a profile, api_key) has to be a key that has not expired and may use this namespace"
	case p.tls() != nil && len(p.tls().Certificates) > 0:
		return "the client certificate in TEMPORAL_TLS_CLIENT_CERT_PATH (in a profile, tls.client_cert_path) has to be one that may use this namespace"
	}
	return "Give it an API key with TEMPORAL_API_KEY (in a profile, api_key), or a client certificate with TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH (tls.client_cert_path, tls.client_key_path)"
}

// diagnose says why there is no connection. gRPC has the reason only as a text, so it is looked for once more.
func (p place) diagnose(ctx context.Context, cause error) error {
	if refused := p.refusal(cause); refused != nil {
		return refused
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(p.address(), "dns:///"))
	if err != nil {
		return fmt.Errorf("no Temporal server answers at %s: %w\nStart one with `taskbridge dev`, or name another with TEMPORAL_ADDRESS", p.address(), err)
	}
	defer func() { _ = conn.Close() }()
	if problem := p.diagnoseTLS(ctx, conn); problem != nil {
		return problem
	}
	return p.errorf("%s does not answer as Temporal does: %w\nName the gRPC address of a server with TEMPORAL_ADDRESS", p.address(), cause)
}

// diagnoseTLS is nil if the two sides agree about TLS.
func (p place) diagnoseTLS(ctx context.Context, conn net.Conn) error {
	if p.tls() == nil {
		if err := shakeHands(ctx, conn, &tls.Config{InsecureSkipVerify: true}); err == nil || isAlert(err) {
			return p.errorf("%s speaks TLS, and we do not: set TEMPORAL_TLS=true (in a profile, a section tls)", p.address())
		}
		return nil
	}
	config := p.tls().Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(p.address())
	}
	return p.explainTLS(shakeHands(ctx, conn, config))
}

// shakeHands begins a TLS connection, up to the first byte from the server: it may refuse a client certificate only there.
func shakeHands(ctx context.Context, conn net.Conn, config *tls.Config) error {
	config.NextProtos = []string{"h2"}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = secure.SetReadDeadline(deadline)
	}
	if _, err := secure.Read(make([]byte, 1)); isAlert(err) {
		return err
	}
	return nil
}

// isAlert reports whether the server refused TLS in terms of TLS.
func isAlert(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op == "remote error"
}

func (p place) explainTLS(err error) error {
	var (
		plain       tls.RecordHeaderError
		unknown     x509.UnknownAuthorityError
		named       x509.HostnameError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &plain):
		return p.errorf("%s does not speak TLS, and we do, because of TEMPORAL_TLS, TEMPORAL_TLS_* or TEMPORAL_API_KEY (in a profile, tls or api_key): remove them", p.address())
	case errors.As(err, &unknown):
		return p.errorf("the certificate of %s is not trusted: %w\nName the CA that signed it with TEMPORAL_TLS_SERVER_CA_CERT_PATH (in a profile, tls.server_ca_cert_path)", p.address(), err)
	case errors.As(err, &named):
		return p.errorf("the certificate of %s is for another name: %w\nCorrect TEMPORAL_ADDRESS, or say the name with TEMPORAL_TLS_SERVER_NAME (in a profile, tls.server_name)", p.address(), err)
	case errors.As(err, &certificate):
		return p.errorf("the certificate of %s is not valid: %w\nThe server needs another", p.address(), err)
	case isAlert(err) && strings.Contains(err.Error(), "certificate"):
		return p.errorf("%s %w\n%s", p.address(), p.clientCertificate(err), "TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH (in a profile, tls.client_cert_path and tls.client_key_path) have to be one that it trusts, and its key")
	}
	return p.errorf("%s breaks off TLS: %w", p.address(), err)
}

func (p place) clientCertificate(err error) error {
	if len(p.tls().Certificates) == 0 {
		return fmt.Errorf("wants a client certificate (mTLS): %w", err)
	}
	return fmt.Errorf("refuses the client certificate: %w", err)
}

// warnOfUnreadable looks whether running tasks are encoded in a way that cannot be decoded here: with another key, or with a
// key while there is none. That is no error. One of them must not keep a front end down which can serve all others.
func (c *connector) warnOfUnreadable(ctx context.Context, p place, connected client.Client) {
	const some = 20 // the newest
	running, err := connected.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: some, Query: `ExecutionStatus = "Running" AND WorkflowId STARTS_WITH "mcp:"`,
	})
	if err != nil {
		return // it may not be allowed, or pass
	}
	for _, workflow := range running.GetExecutions() {
		if err := p.read(workflow.GetMemo().GetFields()[signals.MetaMemo]); err != nil {
			c.log.Warn("a running task cannot be read", "workflow", workflow.GetExecution().GetWorkflowId(), "namespace", p.options.Namespace, "error", err)
			return
		}
	}
}

// read says why a payload cannot be read.
func (p place) read(payload *commonpb.Payload) error {
	encoding := string(payload.GetMetadata()[converter.MetadataEncoding])
	switch encoding {
	case "", converter.MetadataEncodingJSON:
		return nil
	}
	if p.codec == nil {
		return fmt.Errorf("it is encoded as %q, and there are neither keys (TASKBRIDGE_PAYLOAD_KEYS) nor a codec server (TEMPORAL_CODEC_ENDPOINT)", encoding)
	}
	_, err := p.codec.Decode([]*commonpb.Payload{payload})
	return cmp.Or(err, fmt.Errorf("it is encoded as %q, which the codec leaves as it is", encoding))
}
