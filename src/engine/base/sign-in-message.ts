/** The fields of an EIP-4361 message, as x402’s extension sign-in-with-x names them. */
export interface SignInMessage {
  readonly domain: string
  readonly address: string
  readonly statement?: string
  readonly uri: string
  readonly version: '1'
  /** CAIP-2. */
  readonly chainId: string
  readonly nonce: string
  readonly issuedAt: string
  readonly expirationTime?: string
  readonly notBefore?: string
  readonly requestId?: string
  readonly resources?: readonly string[]
}

/** The text that is signed. */
export function signInText(message: SignInMessage): string {
  const { domain, address, statement, uri, version, chainId, nonce, issuedAt } = message
  const { expirationTime, notBefore, requestId, resources } = message
  return [
    `${domain} wants you to sign in with your Ethereum account:`,
    address,
    '',
    ...((statement ?? '') === '' ? [''] : [statement, '']),
    `URI: ${uri}`,
    `Version: ${version}`,
    `Chain ID: ${chainId.slice(chainId.indexOf(':') + 1)}`,
    `Nonce: ${nonce}`,
    `Issued At: ${issuedAt}`,
    ...(expirationTime === undefined ? [] : [`Expiration Time: ${expirationTime}`]),
    ...(notBefore === undefined ? [] : [`Not Before: ${notBefore}`]),
    ...(requestId === undefined ? [] : [`Request ID: ${requestId}`]),
    ...(resources === undefined ? [] : ['Resources:', ...resources.map((each) => `- ${each}`)]),
  ].join('\n')
}
