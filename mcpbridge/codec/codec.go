// Package codec keeps what tasks are about out of Temporal's hands: arguments, questions, answers, results and failures are
// encoded before they leave the process and decoded when they come back. [AES] encrypts with keys of this process, [Server]
// leaves it to a codec server, and [Use] puts either, or any other converter.PayloadCodec, to work for a client and its
// workers.
package codec

import (
	"errors"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Namespaced is a codec that encodes differently for different namespaces.
type Namespaced interface {
	converter.PayloadCodec
	// In is the codec for one namespace.
	In(namespace string) converter.PayloadCodec
}

// Use makes a client, and the workers on it, encode every payload that they send and decode every one that they get,
// failure messages and stack traces included. Search attributes stay as they are: Temporal has to read them.
//
// The codec works on the messages to and from Temporal rather than in the options' data converter, which therefore should
// have none of its own. A data converter's codec that fails makes the SDK send memos in the clear, drop signals and fail
// workflows; here a request whose payloads cannot be encoded is not sent, and a task whose payloads cannot be decoded goes
// back to Temporal, which hands it out again. Both ways have the same result, so that others may use the codec in a data
// converter of theirs.
func Use(o *client.Options, c converter.PayloadCodec) {
	o.FailureConverter = temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter:          o.DataConverter,
		EncodeCommonAttributes: true,
	})
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(interceptor(c)))
}

// Check encodes and decodes a payload and compares: it finds a codec that does not work before there is any task. The
// namespace matters to a [Namespaced] codec.
func Check(c converter.PayloadCodec, namespace string) error {
	c = inNamespace(c, namespace)
	probe := strings.Repeat("taskbridge checks whether this comes back. ", 50) // long, for codecs that compress what gets shorter
	sent, err := converter.GetDefaultDataConverter().ToPayload(probe)
	if err != nil {
		return err
	}
	encoded, err := c.Encode([]*commonpb.Payload{proto.CloneOf(sent)})
	if err != nil {
		return fmt.Errorf("encode a payload: %w", err)
	}
	if len(encoded) != 1 || proto.Equal(encoded[0], sent) {
		return errors.New("encoding left a payload as it was")
	}
	decoded, err := c.Decode(encoded)
	if err != nil {
		return fmt.Errorf("decode a payload: %w", err)
	}
	if len(decoded) != 1 || !proto.Equal(decoded[0], sent) {
		return errors.New("decoding an encoded payload gives something else than was encoded")
	}
	return nil
}

func inNamespace(c converter.PayloadCodec, namespace string) converter.PayloadCodec {
	if namespaced, ok := c.(Namespaced); ok {
		return namespaced.In(namespace)
	}
	return c
}
