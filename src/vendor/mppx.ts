export { Challenge, Credential, Errors, Mcp } from 'mppx'
