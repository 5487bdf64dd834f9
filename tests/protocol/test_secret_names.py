"""Which names speak of secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.protocol.schemas import looks_secret


def words(text: str) -> list[str]:
    return text.split()


SECRET = words("""
    password passwd passphrase pwd userPassword user_password user-password PASSWORD password2
    secret clientSecret client_secret secrets my.secret CLIENT_SECRET
    token access_token accessToken authToken bearer_token x-auth-token apitoken jwt
    api_key apiKey APIKey API_KEY apikey api-keys secret_key private_key privateKey PrivateKeyPEM
    accessKeyId ssh_key signingKey encryption_key
    credential credentials awsCredentials Authorization authorization_header
    ssn SSN userSSN cvv cvv2 CVC pin PIN userPIN pin_code otp totp_code
    social_security_number cardNumber credit_card_number one-time-code verification_code
""")

HARMLESS = words("""
    max_tokens maxTokens tokens tokenizer tokenize token_count tokenLimit token_type token_budget
    page_token nextPageToken next_token continuationToken max_token
    pinned pinning spinner opinion pins
    passenger compass bypass passed pass
    secretary keyboard key keys primary_key foreignKey keyName monkey cacheKey
    name region text id order_number card number security
""")


@pytest.mark.parametrize("name", SECRET)
def test_a_name_of_a_secret_is_recognised(name):
    assert looks_secret(name)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_name_is_left_alone(name):
    assert not looks_secret(name)


@pytest.mark.parametrize("text", ["Your API key", "The password", "Card number", "PIN"])
def test_words_of_a_title_count_too(text):
    assert looks_secret(text)


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_is_a_name(text):
    assert looks_secret(text) in (True, False)
