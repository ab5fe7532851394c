package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/durationpb"

	"taskbridge/internal/devserver"
	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
	"taskbridge/workflows"
)

// authority is a CA of a test.
type authority struct {
	t           testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string // its certificate
}

func newAuthority(t testing.TB) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA of a test"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "ca.pem")
	writePEM(t, file, "CERTIFICATE", der)
	return authority{t, certificate, key, file}
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// issue makes a certificate for a host until a time, and the files of it and its key.
func (a authority) issue(host string, until time.Time) (certificate tls.Certificate, certFile, keyFile string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	require.NoError(a.t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	dir := a.t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(a.t, certFile, "CERTIFICATE", der)
	writePEM(a.t, keyFile, "PRIVATE KEY", keyDER)
	certificate, err = tls.LoadX509KeyPair(certFile, keyFile)
	require.NoError(a.t, err)
	return certificate, certFile, keyFile
}

// server is a configuration for a server on 127.0.0.1.
func (a authority) server() *tls.Config {
	certificate, _, _ := a.issue("127.0.0.1", time.Now().Add(time.Hour))
	return &tls.Config{Certificates: []tls.Certificate{certificate}}
}

// mutual is one that wants client certificates of a CA.
func (a authority) mutual() *tls.Config {
	config := a.server()
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	config.ClientCAs.AddCert(a.certificate)
	return config
}

// behindTLS puts TLS in front of the shared Temporal server, and returns the address.
func behindTLS(t testing.TB, config *tls.Config) string {
	t.Helper()
	config.NextProtos = []string{"h2"}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	backend := testenv.Temporal(t).Address()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go relay(conn.(*tls.Conn), backend)
		}
	}()
	return listener.Addr().String()
}

func relay(outside *tls.Conn, backend string) {
	defer func() { _ = outside.Close() }()
	if outside.Handshake() != nil {
		return
	}
	inside, err := net.Dial("tcp", backend)
	if err != nil {
		return
	}
	defer func() { _ = inside.Close() }()
	go func() { _, _ = io.Copy(inside, outside) }()
	_, _ = io.Copy(outside, inside)
}

// behindAPIKeys puts a check of API keys, and TLS, in front of the shared server. It answers as a gRPC server does.
func behindAPIKeys(t testing.TB, config *tls.Config, allowed map[string]string) string {
	t.Helper()
	target := &url.URL{Scheme: "http", Host: testenv.Temporal(t).Address()}
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = transport, -1
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		namespace, known := allowed[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		asked := r.Header.Get("Temporal-Namespace")
		switch {
		case !known:
			refuse(w, "16", "Jwt is invalid")
		case asked != "" && asked != namespace:
			refuse(w, "7", "Request unauthorized.")
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	server.TLS, server.EnableHTTP2 = config, true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func refuse(w http.ResponseWriter, status, message string) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Grpc-Status", status)
	w.Header().Set("Grpc-Message", message)
}

// configFile writes profiles and has Temporal's configuration find them.
func configFile(t *testing.T, toml string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(file, []byte(toml), 0o600))
	t.Setenv("TEMPORAL_CONFIG_FILE", file)
}

// connectWith connects with variables such as "TEMPORAL_TLS=true". It also returns the log.
func connectWith(t *testing.T, variables []string, tools ...*catalog.Tool) (*connections, string, error) {
	t.Helper()
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	s, err := loadSettings()
	require.NoError(t, err)
	var log bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	connected, err := connectAll(ctx, s, streams{Err: &log}, tools)
	if err == nil {
		t.Cleanup(connected.Close)
	}
	return connected, log.String(), err
}

// works asks Temporal something over a connection.
func works(t *testing.T, c client.Client) {
	t.Helper()
	_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: uuid.NewString()}, "Unknown", "argument")
	require.NoError(t, err)
}

func newNamespace(t *testing.T) string {
	t.Helper()
	name := "ns-" + uuid.NewString()
	service := testenv.Client(t).WorkflowService()
	_, err := service.RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the server's parts learn of it one by one
		_, err := service.ListWorkflowExecutions(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Namespace: name})
		return err == nil
	}, time.Minute, 50*time.Millisecond)
	return name
}

func TestWaysToConnect(t *testing.T) {
	ca := newAuthority(t)
	_, certFile, keyFile := ca.issue("client", time.Now().Add(time.Hour))
	elsewhere, _, _ := ca.issue("temporal.example.com", time.Now().Add(time.Hour))
	for name, variables := range map[string][]string{
		"plain": {"TEMPORAL_ADDRESS=" + testenv.Temporal(t).Address()},
		"TLS":   {"TEMPORAL_ADDRESS=" + behindTLS(t, ca.server()), "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + ca.file},
		"TLS under another name": {
			"TEMPORAL_ADDRESS=" + behindTLS(t, &tls.Config{Certificates: []tls.Certificate{elsewhere}}),
			"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + ca.file, "TEMPORAL_TLS_SERVER_NAME=temporal.example.com",
		},
		"mTLS": {
			"TEMPORAL_ADDRESS=" + behindTLS(t, ca.mutual()), "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + ca.file,
			"TEMPORAL_TLS_CLIENT_CERT_PATH=" + certFile, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + keyFile,
		},
		"API key": {
			"TEMPORAL_ADDRESS=" + behindAPIKeys(t, ca.server(), map[string]string{"s3cret": "default"}), "TEMPORAL_API_KEY=s3cret",
			"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + ca.file,
		},
	} {
		t.Run(name, func(t *testing.T) {
			configFile(t, "")
			connected, _, err := connectWith(t, variables)
			require.NoError(t, err)
			works(t, connected)
		})
	}
}

func TestWhatIsWrongWithAConnectionIsTold(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	trusted := "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + ca.file
	plain := "TEMPORAL_ADDRESS=" + testenv.Temporal(t).Address()
	secure := "TEMPORAL_ADDRESS=" + behindTLS(t, ca.server())
	mutual := "TEMPORAL_ADDRESS=" + behindTLS(t, ca.mutual())
	keyed := "TEMPORAL_ADDRESS=" + behindAPIKeys(t, ca.server(), map[string]string{"s3cret": "builds"})
	elsewhere, _, _ := ca.issue("temporal.example.com", time.Now().Add(time.Hour))
	late, _, _ := ca.issue("127.0.0.1", time.Now().Add(-time.Hour))
	_, certFile, keyFile := other.issue("client", time.Now().Add(time.Hour))
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)

	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(guarded.Close)

	for name, test := range map[string]struct {
		variables []string
		says      string
		advises   string
	}{
		"nobody there":          {[]string{"TEMPORAL_ADDRESS=127.0.0.1:1"}, "no Temporal server answers at 127.0.0.1:1: ", "TEMPORAL_ADDRESS"},
		"no port":               {[]string{"TEMPORAL_ADDRESS=temporal"}, "missing port in address", "TEMPORAL_ADDRESS"},
		"no Temporal":           {[]string{"TEMPORAL_ADDRESS=" + web.Listener.Addr().String()}, "does not answer as Temporal does", "TEMPORAL_ADDRESS"},
		"TLS there":             {[]string{secure}, "speaks TLS, and we do not", "TEMPORAL_TLS=true"},
		"mTLS there":            {[]string{mutual}, "speaks TLS, and we do not", "TEMPORAL_TLS=true"},
		"TLS here":              {[]string{plain, "TEMPORAL_TLS=true"}, "does not speak TLS, and we do", "remove"},
		"TLS of an API key":     {[]string{plain, "TEMPORAL_API_KEY=s3cret"}, "does not speak TLS, and we do", "TEMPORAL_API_KEY"},
		"API key in the clear":  {[]string{plain, "TEMPORAL_API_KEY=s3cret", "TEMPORAL_TLS=false"}, "would be sent in the clear", "TEMPORAL_TLS=false"},
		"an unknown CA":         {[]string{secure, "TEMPORAL_TLS=true"}, "is not trusted", "TEMPORAL_TLS_SERVER_CA_CERT_PATH"},
		"another CA":            {[]string{secure, "TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + other.file}, "is not trusted", "TEMPORAL_TLS_SERVER_CA_CERT_PATH"},
		"a CA file that is not": {[]string{secure, "TEMPORAL_TLS_SERVER_CA_CERT_PATH=/no/such/file"}, "/no/such/file: no such file", ""},
		"another name": {
			[]string{"TEMPORAL_ADDRESS=" + behindTLS(t, &tls.Config{Certificates: []tls.Certificate{elsewhere}}), trusted},
			"is for another name", "TEMPORAL_TLS_SERVER_NAME",
		},
		"expired": {
			[]string{"TEMPORAL_ADDRESS=" + behindTLS(t, &tls.Config{Certificates: []tls.Certificate{late}}), trusted},
			"is not valid: ", "expired",
		},
		"no client certificate": {[]string{mutual, trusted}, "wants a client certificate (mTLS)", "TEMPORAL_TLS_CLIENT_CERT_PATH"},
		"a client certificate of somebody else": {
			[]string{mutual, trusted, "TEMPORAL_TLS_CLIENT_CERT_PATH=" + certFile, "TEMPORAL_TLS_CLIENT_KEY_PATH=" + keyFile},
			"refuses the client certificate", "TEMPORAL_TLS_CLIENT_KEY_PATH",
		},
		"no client key":         {[]string{mutual, trusted, "TEMPORAL_TLS_CLIENT_CERT_PATH=" + certFile}, "client cert or key path", ""},
		"no API key":            {[]string{keyed, trusted}, `does not let us into namespace "default": `, "Give it an API key with TEMPORAL_API_KEY"},
		"a wrong API key":       {[]string{keyed, trusted, "TEMPORAL_API_KEY=wr0ng"}, "Jwt is invalid", "TEMPORAL_API_KEY (in a profile, api_key) has to be"},
		"a key for another":     {[]string{keyed, trusted, "TEMPORAL_API_KEY=s3cret"}, `does not let us into namespace "default": Request unauthorized.`, "may use this namespace"},
		"no namespace":          {[]string{plain, "TEMPORAL_NAMESPACE=nope"}, `temporal has no namespace "nope": `, "`temporal operator namespace create -n nope`"},
		"no codec server":       {[]string{plain, "TEMPORAL_CODEC_ENDPOINT=http://127.0.0.1:1/{namespace}"}, "the codec server at http://127.0.0.1:1/default does not answer: encode a payload: ", "TEMPORAL_CODEC_ENDPOINT"},
		"no codec server's key": {[]string{plain, "TEMPORAL_CODEC_ENDPOINT=" + guarded.URL, "TEMPORAL_CODEC_AUTH=wr0ng"}, "refuses us: encode a payload: Unauthorized", "TEMPORAL_CODEC_AUTH"},
		"another server":        {[]string{plain, "TEMPORAL_CODEC_ENDPOINT=" + web.URL}, "does not do its work: encode a payload: Not Found", "TEMPORAL_CODEC_ENDPOINT"},
		"a codec server's URL":  {[]string{plain, "TEMPORAL_CODEC_ENDPOINT=s3cret"}, "is no http or https URL", "https://codec.example.com/{namespace}"},
		"authorization alone":   {[]string{plain, "TEMPORAL_CODEC_AUTH=s3cret"}, "TEMPORAL_CODEC_AUTH without a codec server", "TEMPORAL_CODEC_ENDPOINT"},
		"two codecs": {
			[]string{plain, "TEMPORAL_CODEC_ENDPOINT=" + web.URL, "TASKBRIDGE_PAYLOAD_KEYS=" + newKey("a")},
			"both keys (TASKBRIDGE_PAYLOAD_KEYS) and a codec server (TEMPORAL_CODEC_ENDPOINT", "remove the other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			configFile(t, "")
			_, log, err := connectWith(t, test.variables)
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.says)
			assert.Contains(t, err.Error(), test.advises)
			for _, secret := range []string{"s3cret", "wr0ng"} {
				assert.NotContains(t, err.Error()+log, secret)
			}
		})
	}
}

func newKey(id string) string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret)
	return id + ":" + base64.StdEncoding.EncodeToString(secret)
}

// TestNamespacesOfTools: one is in a profile, behind TLS and with an API key of its own, the other beside the default one.
func TestNamespacesOfTools(t *testing.T) {
	ca := newAuthority(t)
	beside, apart := newNamespace(t), newNamespace(t)
	profile := fmt.Sprintf("[profile.%%s]\nnamespace = %q\naddress = %q\napi_key = \"%%s\"\ntls.server_ca_cert_path = %q\n",
		apart, behindAPIKeys(t, ca.server(), map[string]string{"s3cret": apart}), ca.file)
	standard := []string{"TEMPORAL_ADDRESS=" + testenv.Temporal(t).Address()}
	tools := []*catalog.Tool{{Name: "a"}, {Name: "b", Namespace: beside}, {Name: "c", Namespace: apart}, {Name: "d", Namespace: "default"}}

	t.Run("are connected", func(t *testing.T) {
		configFile(t, fmt.Sprintf(profile, "apart", "s3cret"))
		connected, _, err := connectWith(t, standard, tools...)
		require.NoError(t, err)
		assert.Equal(t, "default", connected.namespace)
		require.Len(t, connected.others, 2)
		works(t, connected)
		for _, namespace := range []string{beside, apart} {
			run, err := connected.others[namespace].Temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "q"}, "Unknown")
			require.NoError(t, err)
			_, err = testenv.Client(t).WorkflowService().GetWorkflowExecutionHistory(t.Context(), &workflowservice.GetWorkflowExecutionHistoryRequest{
				Namespace: namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: run.GetID()},
			})
			require.NoError(t, err, "it is there")
		}
	})
	t.Run("are encoded as the default one", func(t *testing.T) {
		var seen []string
		handler := converter.NewPayloadCodecHTTPHandler(converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, r.Header.Get("X-Namespace"))
			handler.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		configFile(t, fmt.Sprintf(profile, "apart", "s3cret"))
		connected, _, err := connectWith(t, append(standard, "TEMPORAL_CODEC_ENDPOINT="+server.URL), tools...)
		require.NoError(t, err)
		assert.Subset(t, seen, []string{"default", beside, apart})
		seen = nil
		works(t, connected.others[apart].Temporal)
		works(t, connected.others[beside].Temporal)
		assert.Equal(t, []string{apart, beside}, seen)
	})
	for name, test := range map[string]struct{ profiles, says string }{
		"a wrong key in a profile": {fmt.Sprintf(profile, "apart", "wr0ng"), `profile "apart": `},
		"two profiles":             {fmt.Sprintf(profile, "x", "s3cret") + fmt.Sprintf(profile, "y", "s3cret"), "is in the profiles x and y: leave it in one"},
	} {
		t.Run(name, func(t *testing.T) {
			configFile(t, test.profiles)
			_, _, err := connectWith(t, standard, tools...)
			assert.ErrorContains(t, err, test.says)
		})
	}
	t.Run("that are missing", func(t *testing.T) {
		configFile(t, "")
		_, _, err := connectWith(t, standard, &catalog.Tool{Name: "build", Namespace: "ci"}, &catalog.Tool{Name: "test", Namespace: "ci"})
		assert.EqualError(t, err, "temporal has no namespace \"ci\", which the catalog names for build, test: create it with `temporal operator namespace create -n ci`")
	})
}

func TestRunningTasksThatCannotBeReadAreTold(t *testing.T) {
	configFile(t, "")
	namespace := newNamespace(t)
	variables := []string{"TEMPORAL_ADDRESS=" + testenv.Temporal(t).Address(), "TEMPORAL_NAMESPACE=" + namespace}
	with := func(keys string) (client.Client, string) {
		connected, log, err := connectWith(t, append(variables, "TASKBRIDGE_PAYLOAD_KEYS="+keys))
		require.NoError(t, err)
		return connected, log
	}
	old, current := newKey("old"), newKey("new")
	temporal, log := with(old)
	assert.Empty(t, log)
	_, err := temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "mcp:anonymous:one", TaskQueue: "q", Memo: map[string]any{signals.MetaMemo: map[string]any{"v": 1}},
	}, "Unknown")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		listed, err := temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{})
		require.NoError(t, err)
		return len(listed.GetExecutions()) == 1
	}, time.Minute, 50*time.Millisecond)

	for keys, says := range map[string]string{
		old:                 "",
		current + "," + old: "",
		current:             `a payload is encrypted with key \"old\", which is not here: add it to TASKBRIDGE_PAYLOAD_KEYS`,
		newKey("old"):       `a payload encrypted with key \"old\" cannot be read`,
		"":                  `it is encoded as \"binary/encrypted\", and there are neither keys (TASKBRIDGE_PAYLOAD_KEYS) nor a codec server`,
	} {
		_, log := with(keys)
		if says == "" {
			assert.Empty(t, log)
			continue
		}
		assert.Contains(t, log, says)
		assert.Contains(t, log, "workflow=mcp:anonymous:one")
	}
}

// TestDevHasTheNamespacesOfItsCatalog: they are on its own server, even if a profile has one of them elsewhere.
func TestDevHasTheNamespacesOfItsCatalog(t *testing.T) {
	configFile(t, "[profile.elsewhere]\nnamespace = \"ci\"\naddress = \"127.0.0.1:1\"\n")
	tools := []*catalog.Tool{{Name: "a", Namespace: "ci"}, {Name: "b", Namespace: "default"}, {Name: "c"}}
	io := streams{Err: os.Stderr}
	connector, err := newConnector(settings{LogLevel: slog.LevelError}, io)
	require.NoError(t, err)
	server, err := startTemporal(t.Context(), connector, devserver.Options{NoUI: true, Further: sorted(namespaces(tools))}, io)
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	connected, err := connector.connect(t.Context(), tools)
	require.NoError(t, err)
	t.Cleanup(connected.Close)
	stop, err := startWorkers(connector, connected, "q")
	require.NoError(t, err)
	t.Cleanup(stop)

	for _, temporal := range []client.Client{connected, connected.others["ci"].Temporal} {
		run, err := temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: "q"}, workflows.PipelineName,
			json.RawMessage(`{"pipeline":{"steps":[{"name":"one","run":["true"]}]}}`))
		require.NoError(t, err)
		var result signals.ToolResult
		require.NoError(t, run.Get(t.Context(), &result))
		assert.False(t, result.IsError)
	}
}
