// The viewer of the API: Scalar, in place of the list of operations. It loads nothing from other
// servers, which the Content-Security-Policy of the page forbids, and keeps a token only in memory.
import { createApiReference } from '@scalar/api-reference'
import '@scalar/api-reference/style.css'
import './viewer.css'

const place = document.querySelector('#api')
place.replaceChildren() // what is left there, the viewer would take for its own
createApiReference(place, {
  url: 'openapi.json',
  theme: 'none',
  withDefaultFonts: false,
  hideClientButton: true,
  persistAuth: false,
  telemetry: false,
  showDeveloperTools: 'never',
  agent: { disabled: true },
  mcp: { disabled: true },
  documentDownloadType: 'json',
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
  authentication: { preferredSecurityScheme: 'token' },
})
