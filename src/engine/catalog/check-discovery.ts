import { error, type Issue } from './issue.ts'
import type { Subject } from './subject.ts'

/** What others believe about a service is proven by texts of an exact form. */
export function checkDiscovery(subject: Subject): Issue[] {
  return [...checkRegistryAuth(subject)]
}

/** Bytes of a public key by its algorithm: ed25519, and a compressed point of P-384. */
const KEY_BYTES: Readonly<Record<string, number>> = { ed25519: 32, ecdsap384: 49 }

/** Something else at that address would look like a proof that failed. */
function checkRegistryAuth({ declared, document }: Subject): Issue[] {
  const text = declared.service.mcp_registry_auth
  if (text === undefined) return []
  const [, algorithm = '', encoded = ''] =
    /^v=MCPv1; k=(ed25519|ecdsap384); p=([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? []
  const at = document.at(['service', 'mcp_registry_auth'])
  if (encoded === '') {
    const form = 'v=MCPv1; k=ed25519; p=<the public key in base64>'
    return [error('registry_auth_invalid', at, `the line has this form: "${form}" (or k=ecdsap384)`)]
  }
  const bytes = Buffer.from(encoded, 'base64')
  if (bytes.length === KEY_BYTES[algorithm] && bytes.toString('base64') === encoded) return []
  const sentence = `a public key of ${algorithm} has ${KEY_BYTES[algorithm]} bytes in base64, and this is another text`
  return [error('registry_auth_invalid', at, sentence)]
}
