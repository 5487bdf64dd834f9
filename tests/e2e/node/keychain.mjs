// How clients with the TypeScript SDKs sign in: with the browser of the desktop, `xdg-open`.
//
// Tokens are kept in a file, so that the next start of the client needs no person.

import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

// An OAuthClientProvider, and `parameters`: what the browser comes back with.
export async function provider(path) {
  const values = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
  const keep = (name, value) => writeFileSync(path, JSON.stringify(Object.assign(values, { [name]: value })));
  let comeBack;
  const parameters = new Promise((resolve) => (comeBack = resolve));
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://127.0.0.1');
    if (pathname === '/callback') comeBack(searchParams);
    response.end('Done');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  const redirectUrl = `http://127.0.0.1:${server.address().port}/callback`;
  return {
    redirectUrl,
    clientMetadata: {
      client_name: 'A client in TypeScript',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => values.client,
    saveClientInformation: (client) => keep('client', client),
    tokens: () => values.tokens,
    saveTokens: (tokens) => keep('tokens', tokens),
    codeVerifier: () => values.verifier,
    saveCodeVerifier: (verifier) => keep('verifier', verifier),
    invalidateCredentials: (scope) => {
      for (const name of scope === 'all' ? ['client', 'tokens', 'verifier'] : [scope]) keep(name, undefined);
    },
    redirectToAuthorization: (url) => void spawn('xdg-open', [url.href]),
    parameters,
  };
}

// Connect, and sign in first if the server demands it. `finish` gives the transport what came back.
export async function connect(client, transport, authProvider, finish) {
  const first = transport();
  try {
    await client.connect(first, { timeout: 60_000 });
  } catch (error) {
    if (error.constructor.name !== 'UnauthorizedError') throw error;
    await finish(first, await authProvider.parameters);
    await client.connect(transport(), { timeout: 60_000 });
  }
}
