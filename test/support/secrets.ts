import { isJsonObject } from '../../src/engine/base/json.ts'

/** Part of every answer of the test handlers, which only the buyer may see. */
const STORED_VALUE = /stored-value-\d+/

/** In a 402, the last voucher of the channel whose payer has signed the request: its client checks it. */
const OWN_VOUCHER = /"voucherState":\{[^}]*\}/g

/** Secrets that must not occur in log lines and error bodies: collected during a test and searched for at its end. */
export class Secrets {
  readonly #secrets = new Map<string, string>()
  readonly #texts: string[] = []
  readonly #leaked = new Set<string>()

  /** `name` stands for the secret in a failure, which must not contain it either. */
  add(name: string, secret: string): void {
    if (secret.length > 0) this.#secrets.set(secret, name)
  }

  /** Adds the secrets in the value of a PAYMENT-SIGNATURE, or of an Authorization of MPP. */
  addHeader(header: string): void {
    const encoded = header.replace(/^Payment /, '')
    const text = Buffer.from(encoded, 'base64').toString('utf8')
    this.add('a payment header', encoded)
    this.add('a signature', /"signature":"0x([^"]+)"/.exec(text)?.[1] ?? '')
    this.add('a token of redelivery', /"redelivery":\{"info":\{"token":"([^"]+)"/.exec(text)?.[1] ?? '')
  }

  /**
   * Scans a response to a payment for the secrets that are known by now, unless it is the answer that was bought; resolves
   * to its body. The offers of a 402 contain the token that its buyer may use next.
   */
  async scanResponse(response: Response): Promise<string> {
    const body = await response.text()
    if (response.status === 200) return body
    const headers = [...response.headers].map(([name, value]) => `${name}: ${readable(value)}`)
    for (const name of this.#namesIn([body, ...headers].join('\n').replaceAll(OWN_VOUCHER, '')))
      this.#leaked.add(name)
    return body
  }

  /** Scans a text that others may read: log lines, error bodies. */
  scan(text: string): void {
    this.#texts.push(text)
  }

  /** Names of the secrets that the scanned texts contain. */
  leaked(): string[] {
    return [...this.#leaked, ...this.#namesIn(this.#texts.join('\n'))]
  }

  #namesIn(text: string): string[] {
    const known = [...this.#secrets].flatMap(([secret, name]) => (text.includes(secret) ? [name] : []))
    return STORED_VALUE.test(text) ? [...known, 'a stored value'] : known
  }
}

/** Adds the JSON that a payment header encodes in base64. */
function readable(value: string): string {
  const text = Buffer.from(value, 'base64').toString('utf8')
  try {
    return isJsonObject(JSON.parse(text)) ? `${value} ${text}` : value
  } catch {
    return value
  }
}
