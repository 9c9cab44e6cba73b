import { error, warning, type Issue } from './issue.ts'
import { isDate } from './parameter.ts'
import type { Subject } from './subject.ts'

/** What others believe about a service is proven by texts of an exact form. */
export function checkDiscovery(subject: Subject): Issue[] {
  return [
    ...checkDate(subject),
    ...checkLicense(subject),
    ...checkRegistryAuth(subject),
    ...checkKeyFiles(subject),
  ]
}

/** Documents reckon from this day. */
function checkDate({ declared, document }: Subject): Issue[] {
  const { updated } = declared.service
  if (updated === undefined || isDate(updated)) return []
  const at = document.at(['service', 'updated'])
  return [error('date_invalid', at, `there is no day ${updated} between 1970 and 2100`)]
}

/** OpenAPI 3.1 takes one of the two. */
function checkLicense({ declared, document }: Subject): Issue[] {
  const { license } = declared.service
  if (license?.identifier === undefined || license.url === undefined) return []
  const at = document.atKey(['service', 'license', 'url'])
  return [error('license_twice', at, 'a licence is named by its identifier or by its url: keep one of them')]
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

/** IndexNow: `/<key>.txt` holds its own name and nothing else. */
function checkKeyFiles(subject: Subject): Issue[] {
  return Object.entries(subject.declared.files ?? {}).flatMap(([path, entry]) => {
    const name = /^\/([^/]+)\.txt$/.exec(path)?.[1]
    const text = contentOf(subject, entry)
    if (name === undefined || text === undefined) return []
    const at = subject.document.atKey(['files', path])
    const own = text.trim() === name
    if (own && !KEY.test(name))
      return [
        warning(
          'key_file_invalid',
          at,
          `a key for IndexNow has 8 to 128 letters, digits or hyphens: ${name}`,
        ),
      ]
    if (text === name || !(own || LIKE_A_KEY.test(name))) return []
    return [
      warning(
        'key_file_differs',
        at,
        `${path} looks like a key for IndexNow, whose file holds exactly its name, without a line break: "${name}"`,
      ),
    ]
  })
}

const KEY = /^[A-Za-z0-9-]{8,128}$/
/** As generators make them; /humans.txt is none. */
const LIKE_A_KEY = /^(?=.*\d)[0-9a-f-]{16,128}$/i

function contentOf(
  subject: Subject,
  entry: NonNullable<Subject['declared']['files']>[string],
): string | undefined {
  if (typeof entry === 'string') return entry
  return entry.file === undefined ? undefined : subject.read(entry.file)?.toString('utf8')
}
