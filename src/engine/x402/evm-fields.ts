/** The JSON Schema of values of EVM in payloads. */

export const ADDRESS = { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$' }

export const BYTES32 = { type: 'string', pattern: '^0x[0-9a-fA-F]{64}$' }

/** Hexadecimal and signs are refused, since the contracts and this service must read the same number. */
export const UINT256 = { type: 'string', pattern: '^(0|[1-9][0-9]{0,77})$' }

/** A nonce of Permit2: clients send it in both forms. */
export const NONCE = { type: 'string', pattern: '^(0|[1-9][0-9]{0,77}|0x[0-9a-fA-F]{1,64})$' }
