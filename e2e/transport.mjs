// How the scripts of this folder reach a server.

// connector returns what makes a transport to a server: the URL of an endpoint, or a command and its arguments, which gets
// the environment of this process. The classes are those of the SDK that the transport is for.
export function connector(StreamableHTTPClientTransport, StdioClientTransport) {
  return ([target, ...args]) =>
    target.startsWith('http://')
      ? new StreamableHTTPClientTransport(new URL(target))
      : new StdioClientTransport({ command: target, args, env: process.env });
}

// dispatcher sends requests past a Client of the SDK, whose own codecs refuse tasks, but over its transport.
export function dispatcher(transport) {
  const waiting = new Map();
  const deliver = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const settle = waiting.get(message.id);
    if (settle === undefined) return deliver(message, extra);
    waiting.delete(message.id);
    const { result, error } = message;
    settle(error === undefined ? { kind: 'result', result } : { kind: 'error', error });
  };
  let last = 0;
  return (request) => new Promise((resolve, reject) => {
    const id = `task-request-${++last}`;
    waiting.set(id, resolve);
    transport.send({ ...request, jsonrpc: '2.0', id }).catch(reject);
  });
}
