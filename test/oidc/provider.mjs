// An OpenID provider for tests. It reads its settings as one line of JSON from
// standard input, writes its issuer to standard output, and ends when standard
// input does: no test can leave it behind.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import Provider from 'oidc-provider';

// settings: client {id, secret}, callback (the path of redirect URIs), accounts
// [{subject, email, verified, name, groups}], claims_in_id_token, logout_uri (which
// receives logout tokens, or empty).
function makeProvider(issuer, settings) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const accounts = new Map(settings.accounts.map((account) => [account.subject, account]));
  const provider = new Provider(issuer, {
    clients: [{
      client_id: settings.client.id,
      client_secret: settings.client.secret,
      redirect_uris: [`http://127.0.0.1${settings.callback}`],
      ...(settings.logout_uri && { backchannel_logout_uri: settings.logout_uri }),
    }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'], groups: ['groups'] },
    conformIdTokenClaims: !settings.claims_in_id_token,
    cookies: { keys: [randomUUID()] },
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    findAccount: (ctx, id) => accounts.has(id) && {
      accountId: id,
      claims: () => {
        const { email, verified, name, groups } = accounts.get(id);
        return { sub: id, email, email_verified: verified, name, groups };
      },
    },
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'RS256', use: 'sig' }] },
    // Everybody has consented already.
    loadExistingGrant: async (ctx) => {
      const grant = new ctx.oidc.provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
      grant.addOIDCScope('openid email profile groups');
      await grant.save();
      return grant;
    },
    pkce: { methods: ['S256'], required: () => true },
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
  });
  // Each server that is tested has a port of its own.
  provider.Client.prototype.redirectUriAllowed = (uri) => {
    const { hostname, pathname } = new URL(uri);
    return ['127.0.0.1', 'localhost'].includes(hostname) && pathname === settings.callback;
  };
  return { provider, accounts };
}

const signInPage = `<!doctype html>
<html lang="en"><title>Sign in</title>
<form method="post"><label>Account <input name="account" autofocus></label> <button>Sign in</button></form>
`;

async function readForm(request) {
  let body = '';
  for await (const chunk of request) body += chunk;
  return new URLSearchParams(body);
}

// interact asks who the person is; there are no passwords.
async function interact({ provider, accounts }, request, response) {
  if (request.method === 'POST') {
    const account = (await readForm(request)).get('account');
    const result = accounts.has(account)
      ? { login: { accountId: account } }
      : { error: 'access_denied', error_description: 'There is no such account.' };
    await provider.interactionFinished(request, response, result);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' });
  response.end(signInPage);
}

// signOut sends a logout token about the account in the path.
async function signOut({ provider }, clientID, request, response) {
  const client = await provider.Client.find(clientID);
  await client.backchannelLogout(request.url.slice('/sign-out/'.length), '');
  response.end();
}

function serve(settings) {
  const server = createServer();
  server.listen(0, '127.0.0.1', () => {
    const issuer = `http://127.0.0.1:${server.address().port}`;
    const made = makeProvider(issuer, settings);
    const callback = made.provider.callback();
    server.on('request', (request, response) => {
      const answer = request.url.startsWith('/interaction/') ? interact(made, request, response)
        : request.url.startsWith('/sign-out/') ? signOut(made, settings.client.id, request, response)
          : callback(request, response);
      answer.catch((error) => {
        response.writeHead(500);
        response.end(String(error));
      });
    });
    process.stdout.write(`${issuer}\n`);
  });
}

const input = createInterface({ input: process.stdin });
input.once('line', (line) => serve(JSON.parse(line)));
input.once('close', () => process.exit());
