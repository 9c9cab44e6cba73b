// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IERC20 {
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

interface IERC1271 {
    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4);
}

/// @title Transfers by signature, as Permit2 carries them out for a spender that adds a witness.
/// @notice The functions, events and errors have the names and arguments of Uniswap’s contract, and its checks come in the
/// same order. Left out: allowances with an expiry, batches, and transfers without a witness.
contract Permit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    error SignatureExpired(uint256 signatureDeadline);
    error InvalidAmount(uint256 maxAmount);
    error InvalidNonce();
    error InvalidSignatureLength();
    error InvalidSignature();
    error InvalidSigner();
    error InvalidContractSignature();

    event UnorderedNonceInvalidation(address indexed owner, uint256 word, uint256 mask);

    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)");
    bytes32 private constant TOKEN_PERMISSIONS_TYPEHASH = keccak256("TokenPermissions(address token,uint256 amount)");
    string private constant WITNESS_TYPE_HEAD =
        "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,";

    /// A bit for each nonce, 256 in a word: its upper 248 bits name the word, its lower 8 bits the place in it.
    mapping(address => mapping(uint256 => uint256)) public nonceBitmap;

    /// @notice Computed on every call, since the code serves on chains of any id.
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256("Permit2"), block.chainid, address(this)));
    }

    function permitWitnessTransferFrom(
        PermitTransferFrom calldata permit,
        SignatureTransferDetails calldata transferDetails,
        address owner,
        bytes32 witness,
        string calldata witnessTypeString,
        bytes calldata signature
    ) external {
        if (block.timestamp > permit.deadline) revert SignatureExpired(permit.deadline);
        if (transferDetails.requestedAmount > permit.permitted.amount) revert InvalidAmount(permit.permitted.amount);
        useNonce(owner, permit.nonce);
        bytes32 kind = keccak256(abi.encodePacked(WITNESS_TYPE_HEAD, witnessTypeString));
        bytes32 permitted =
            keccak256(abi.encode(TOKEN_PERMISSIONS_TYPEHASH, permit.permitted.token, permit.permitted.amount));
        bytes32 message =
            keccak256(abi.encode(kind, permitted, msg.sender, permit.nonce, permit.deadline, witness));
        requireSignature(owner, keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), message)), signature);
        move(permit.permitted.token, owner, transferDetails.to, transferDetails.requestedAmount);
    }

    function invalidateUnorderedNonces(uint256 wordPos, uint256 mask) external {
        nonceBitmap[msg.sender][wordPos] |= mask;
        emit UnorderedNonceInvalidation(msg.sender, wordPos, mask);
    }

    function useNonce(address owner, uint256 nonce) private {
        uint256 bit = 1 << uint8(nonce);
        uint256 flipped = nonceBitmap[owner][nonce >> 8] ^= bit;
        if (flipped & bit == 0) revert InvalidNonce();
    }

    function requireSignature(address owner, bytes32 digest, bytes calldata signature) private view {
        if (owner.code.length > 0) {
            if (IERC1271(owner).isValidSignature(digest, signature) != IERC1271.isValidSignature.selector) {
                revert InvalidContractSignature();
            }
            return;
        }
        (bytes32 r, bytes32 s, uint8 v) = split(signature);
        address signer = ecrecover(digest, v, r, s);
        if (signer == address(0)) revert InvalidSignature();
        if (signer != owner) revert InvalidSigner();
    }

    /// The 65 bytes of r, s and v, or the 64 of EIP-2098, whose highest bit of s is v.
    function split(bytes calldata signature) private pure returns (bytes32 r, bytes32 s, uint8 v) {
        if (signature.length == 65) {
            return (bytes32(signature[:32]), bytes32(signature[32:64]), uint8(signature[64]));
        }
        if (signature.length != 64) revert InvalidSignatureLength();
        uint256 last = uint256(bytes32(signature[32:64]));
        return (bytes32(signature[:32]), bytes32(last & (type(uint256).max >> 1)), uint8(last >> 255) + 27);
    }

    function move(address token, address from, address to, uint256 amount) private {
        (bool success, bytes memory answer) = token.call(abi.encodeCall(IERC20.transferFrom, (from, to, amount)));
        bool moved = answer.length == 0 ? token.code.length > 0 : answer.length >= 32 && abi.decode(answer, (bool));
        require(success && moved, "TRANSFER_FROM_FAILED");
    }
}
